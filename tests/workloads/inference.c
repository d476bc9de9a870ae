/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inference.c - a program that uses the Neuron runtime as an inference server would.
 *
 * Each thread takes a core, loads a model, writes its inputs, executes it N times and reads the outputs.
 * With --check every output is compared with what the built-in model must give.  It knows nothing of
 * tracing.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <nrt/nrt_experimental.h>

struct options {
	unsigned executions, threads, elements, pause_us;
	const char *model_file;
	bool check;
};

struct worker {
	pthread_t thread;
	const struct options *options;
	unsigned number;
	uint32_t core;
	const char *text;
	size_t text_size;
	/* results */
	int failed;
	uint64_t writes, reads, executions, bytes;
};

static int complain(const struct worker *w, const char *what, NRT_STATUS status)
{
	fprintf(stderr, "inference: thread %u, core %u: %s failed with status %d\n", w->number,
		w->core, what, (int)status);
	return -1;
}

static char *default_model(unsigned elements)
{
	char *text = NULL;

	if (asprintf(&text,
		    "ntrace-model 1\n"
		    "name add_vectors\n"
		    "input  a   float32 %u\n"
		    "input  b   float32 %u\n"
		    "output sum float32 %u\n"
		    "step PE   20us add a b sum\n"
		    "step POOL 100us nop\n",
		    elements, elements, elements) < 0)
		return NULL;
	return text;
}

static char *read_model(const char *path, size_t *ret_size)
{
	FILE *f = fopen(path, "rb");
	char *text = NULL;
	long size;

	if (!f)
		return NULL;
	if (fseek(f, 0, SEEK_END) == 0 && (size = ftell(f)) > 0 && fseek(f, 0, SEEK_SET) == 0) {
		text = malloc((size_t)size);
		if (text && fread(text, 1, (size_t)size, f) != (size_t)size) {
			free(text);
			text = NULL;
		}
		*ret_size = (size_t)size;
	}
	fclose(f);
	return text;
}

/* ---- one thread --------------------------------------------------------------------------- */

/* What is written: the n-th element of the i-th tensor.  Sums stay exact in float. */
static float pattern(const struct worker *w, uint64_t tensor, size_t n)
{
	return (float)((n * (tensor + 1) + w->number) % 4096);
}

static int write_tensor(struct worker *w, nrt_tensor_t *t, uint64_t index, size_t size)
{
	float *values = calloc(1, size + sizeof(float));
	NRT_STATUS status;

	if (!values)
		return -1;
	for (size_t n = 0; n < size / sizeof(float); n++)
		values[n] = pattern(w, index, n);
	status = nrt_tensor_write(t, values, 0, size);
	free(values);
	if (status)
		return complain(w, "nrt_tensor_write", status);
	w->writes++;
	w->bytes += size;
	return 0;
}

static int read_tensor(struct worker *w, const nrt_tensor_t *t, size_t size)
{
	bool check = w->options->check && !w->options->model_file;
	float *values = calloc(1, size + sizeof(float));
	NRT_STATUS status;

	if (!values)
		return -1;
	status = nrt_tensor_read(t, values, 0, size);
	for (size_t n = 0; check && !status && n < size / sizeof(float); n++)
		if (values[n] != pattern(w, 0, n) + pattern(w, 1, n)) {
			fprintf(stderr,
				"inference: thread %u: element %zu is %g, and should be %g\n",
				w->number, n, (double)values[n],
				(double)(pattern(w, 0, n) + pattern(w, 1, n)));
			free(values);
			return -1;
		}
	free(values);
	if (status)
		return complain(w, "nrt_tensor_read", status);
	w->reads++;
	w->bytes += size;
	return 0;
}

static int execute_all(
	struct worker *w, nrt_model_t *model, nrt_tensor_set_t *in, nrt_tensor_set_t *out)
{
	for (unsigned i = 0; i < w->options->executions; i++) {
		NRT_STATUS status = nrt_execute(model, in, out);

		if (status)
			return complain(w, "nrt_execute", status);
		w->executions++;
		if (w->options->pause_us) {
			struct timespec pause = {w->options->pause_us / 1000000,
				(long)(w->options->pause_us % 1000000) * 1000};

			nanosleep(&pause, NULL);
		}
	}
	return 0;
}

/* Allocates every tensor of the model into its set, writes the inputs. */
static int make_tensors(struct worker *w, const nrt_tensor_info_array_t *info,
	nrt_tensor_t **tensors, nrt_tensor_set_t *in, nrt_tensor_set_t *out)
{
	for (uint64_t i = 0; i < info->tensor_count; i++) {
		const nrt_tensor_info_t *t = &info->tensor_array[i];
		bool input = t->usage == NRT_TENSOR_USAGE_INPUT;
		NRT_STATUS status = nrt_tensor_allocate(
			NRT_TENSOR_PLACEMENT_DEVICE, (int)w->core, t->size, t->name, &tensors[i]);

		if (!status)
			status =
				nrt_add_tensor_to_tensor_set(input ? in : out, t->name, tensors[i]);
		if (status)
			return complain(w, "nrt_tensor_allocate", status);
		if (input && write_tensor(w, tensors[i], i, t->size))
			return -1;
	}
	return 0;
}

static int use_model(struct worker *w, nrt_model_t *model, const nrt_tensor_info_array_t *info)
{
	nrt_tensor_t **tensors = calloc(info->tensor_count + 1, sizeof(nrt_tensor_t *));
	nrt_tensor_set_t *in = NULL, *out = NULL;
	int rc = tensors ? 0 : -1;

	if (rc == 0 && (nrt_allocate_tensor_set(&in) || nrt_allocate_tensor_set(&out)))
		rc = complain(w, "nrt_allocate_tensor_set", NRT_RESOURCE);
	if (rc == 0)
		rc = make_tensors(w, info, tensors, in, out);
	if (rc == 0)
		rc = execute_all(w, model, in, out);
	for (uint64_t i = 0; rc == 0 && i < info->tensor_count; i++)
		if (info->tensor_array[i].usage == NRT_TENSOR_USAGE_OUTPUT)
			rc = read_tensor(w, tensors[i], info->tensor_array[i].size);
	nrt_destroy_tensor_set(&in);
	nrt_destroy_tensor_set(&out);
	for (uint64_t i = 0; tensors && i < info->tensor_count; i++)
		nrt_tensor_free(&tensors[i]);
	free(tensors);
	return rc;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	nrt_tensor_info_array_t *info = NULL;
	nrt_model_t *model = NULL;
	NRT_STATUS status = nrt_load(w->text, w->text_size, (int32_t)w->core, -1, &model);

	if (status) {
		w->failed = complain(w, "nrt_load", status);
		return NULL;
	}
	status = nrt_get_model_tensor_info(model, &info);
	if (status)
		w->failed = complain(w, "nrt_get_model_tensor_info", status);
	else
		w->failed = use_model(w, model, info);
	(void)nrt_free_model_tensor_info(info);
	status = nrt_unload(model);
	if (status && !w->failed)
		w->failed = complain(w, "nrt_unload", status);
	return NULL;
}

/* ---- all of them -------------------------------------------------------------------------- */

static int report(const struct worker *workers, unsigned n)
{
	uint64_t writes = 0, reads = 0, executions = 0, bytes = 0;
	int failed = 0;

	for (unsigned i = 0; i < n; i++) {
		writes += workers[i].writes;
		reads += workers[i].reads;
		executions += workers[i].executions;
		bytes += workers[i].bytes;
		failed |= workers[i].failed;
	}
	printf("inference: threads=%u writes=%" PRIu64 " executions=%" PRIu64 " reads=%" PRIu64
	       " bytes=%" PRIu64 "%s\n",
		n, writes, executions, reads, bytes, failed ? " FAILED" : "");
	return failed ? 1 : 0;
}

static int run(const struct options *o, const char *text, size_t size, uint32_t cores)
{
	struct worker *workers = calloc(o->threads, sizeof(*workers));
	unsigned started = 0;
	int rc;

	if (!workers)
		return 1;
	for (; started < o->threads; started++) {
		struct worker *w = &workers[started];

		*w = (struct worker){.options = o,
			.number = started,
			.core = started % cores,
			.text = text,
			.text_size = size};
		if (pthread_create(&w->thread, NULL, work, w))
			break;
	}
	for (unsigned i = 0; i < started; i++)
		pthread_join(workers[i].thread, NULL);
	rc = report(workers, started);
	free(workers);
	return started == o->threads ? rc : 1;
}

static const char usage[] =
	"usage: inference [--executions N] [--threads N] [--size ELEMENTS] [--model FILE]\n"
	"                 [--check] [--pause-us N]\n";

static int parse_options(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {{"executions", 1, NULL, 'e'},
		{"threads", 1, NULL, 't'}, {"size", 1, NULL, 's'}, {"model", 1, NULL, 'm'},
		{"check", 0, NULL, 'c'}, {"pause-us", 1, NULL, 'p'}, {NULL, 0, NULL, 0}};
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		unsigned *number = c == 'e'   ? &o->executions
				   : c == 't' ? &o->threads
				   : c == 's' ? &o->elements
				   : c == 'p' ? &o->pause_us
					      : NULL;

		if (number) {
			char *end;

			*number = (unsigned)strtoul(optarg, &end, 10);
			if (*end || end == optarg)
				return -EINVAL;
		} else if (c == 'm') {
			o->model_file = optarg;
		} else if (c == 'c') {
			o->check = true;
		} else {
			return -EINVAL;
		}
	}
	return optind == argc && o->threads && o->threads <= 1024 && o->elements ? 0 : -EINVAL;
}

int main(int argc, char **argv)
{
	struct options o = {.executions = 10, .threads = 1, .elements = 16384};
	uint32_t cores = 0;
	size_t size = 0;
	char *text;
	int rc;

	if (parse_options(argc, argv, &o) < 0) {
		fputs(usage, stderr);
		return 2;
	}
	text = o.model_file ? read_model(o.model_file, &size) : default_model(o.elements);
	if (!text) {
		fprintf(stderr, "inference: cannot read the model %s: %s\n",
			o.model_file ? o.model_file : "", strerror(errno));
		return 1;
	}
	if (!o.model_file)
		size = strlen(text);
	if (nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") != NRT_SUCCESS ||
		nrt_get_visible_vnc_count(&cores) != NRT_SUCCESS || cores == 0) {
		fprintf(stderr, "inference: no NeuronCore to work on\n");
		free(text);
		return 1;
	}
	rc = run(&o, text, size, cores);
	nrt_close();
	free(text);
	return rc;
}
