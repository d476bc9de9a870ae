/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_dump.c - stands in for neuron-dump in tests.
 *
 * Appends what it sees to the file FAKE_DUMP_OUT: an `arg` line per argument, then its descriptors and signals, then `end`;
 * one write per run, so that runs at the same time do not mix.  Then it ends as FAKE_DUMP says: `hang` (a child of its
 * does too; its pid is in the file <out>.pids), `crash`, `fail`, `alone` (who waits for it is killed), `hold-up` (the
 * program of --pid stands still for four seconds meanwhile), `kill` (that program is killed), else well.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void put_descriptors(FILE *f)
{
	DIR *d = opendir("/proc/self/fd");

	fprintf(f, "fds");
	for (struct dirent *e; d && (e = readdir(d));)
		if (*e->d_name != '.' && atoi(e->d_name) != dirfd(d) &&
			atoi(e->d_name) != fileno(f))
			fprintf(f, " %s", e->d_name);
	fprintf(f, "\n");
	if (d)
		closedir(d);
}

static void put_input(FILE *f)
{
	char path[256];
	ssize_t n = readlink("/proc/self/fd/0", path, sizeof(path));

	fprintf(f, "input %.*s\n", n > 0 ? (int)n : 0, path);
}

static void put_signals(FILE *f)
{
	FILE *status = fopen("/proc/self/status", "re");
	char line[256];

	while (status && fgets(line, sizeof(line), status))
		if (!strncmp(line, "SigBlk:", 7) || !strncmp(line, "SigIgn:", 7) ||
			!strncmp(line, "SigPnd:", 7))
			fputs(line, f);
	if (status)
		fclose(status);
	fprintf(f, "leader %d\nsession %d\n", getpgrp() == getpid(), getsid(0) == getpid());
}

static void hang(const char *out)
{
	pid_t child = fork();
	char path[4096];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s.pids", out);
	f = child ? fopen(path, "ae") : NULL;
	if (f) {
		fprintf(f, "%d %d\n", (int)getpid(), (int)child);
		fclose(f);
	}
	for (;;)
		pause();
}

static pid_t find_program(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i++)
		if (!strcmp(argv[i], "--pid"))
			return atoi(argv[i + 1]);
	return 0;
}

static void hold_up(pid_t program)
{
	if (program <= 0 || kill(program, SIGSTOP) < 0 || fork() != 0)
		return;
	(void)setsid();
	sleep(4);
	(void)kill(program, SIGCONT);
	_exit(0);
}

int main(int argc, char **argv)
{
	const char *out = getenv("FAKE_DUMP_OUT"), *how = getenv("FAKE_DUMP");
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	int fd;

	if (!f || !out)
		return 2;
	for (int i = 0; i < argc; i++)
		fprintf(f, "arg %s\n", argv[i]);
	put_descriptors(f);
	put_input(f);
	put_signals(f);
	fprintf(f, "end\n");
	fclose(f);
	fd = open(out, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, text, size) != (ssize_t)size)
		return 3;
	close(fd);
	free(text);
	if (how && !strcmp(how, "hang"))
		hang(out);
	if (how && !strcmp(how, "alone"))
		(void)kill(getppid(), SIGKILL);
	if (how && !strcmp(how, "hold-up"))
		hold_up(find_program(argc, argv));
	if (how && !strcmp(how, "kill") && find_program(argc, argv) > 0)
		(void)kill(find_program(argc, argv), SIGKILL);
	if (how && !strcmp(how, "crash"))
		raise(SIGSEGV);
	return how && !strcmp(how, "fail") ? 9 : 0;
}
