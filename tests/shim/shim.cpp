// SPDX-License-Identifier: Apache-2.0
//
// shim.cpp - the one C++ file: turns C functions into Catch2 test cases.
//
// Catch2 throws to leave a failed REQUIRE; here nothing throws across C frames: checks report
// through CHECKED_ELSE-like calls and the C macro returns.  The runner prints one line per skipped
// and per failed test and ends with `N passed, N failed, N skipped`.  With NTRACE_TEST_RAN=FILE it adds a line
// per test to that file: `passed`, `failed` or `skipped`, a tab, the name; of a skipped one a tab and what is missing.
// With NTRACE_TEST_JOBS=N it runs N tests at once; those tagged [slow] begin first.

#define CATCH_CONFIG_RUNNER
#define CATCH_CONFIG_PREFIX_ALL // the short macro names belong to shim.h
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unistd.h>
#include <vector>

#include "tests/shim/shim.h"
#include "tests/shim/watchdog.h"
#include "tests/shim/workers.h"

namespace
{

struct Pending {
	test_fn fn;
	std::string name, tags, file;
	int line;
};

std::vector<Pending> &pending()
{
	static std::vector<Pending> list;
	return list;
}

std::vector<std::string> infos;
bool skipped_now;
std::string lacks;	 // why, then
std::string first_fault; // of the test: file, line, what was not so
test_counts own_counts, *counts = &own_counts;
pid_t runner; // the process that counts: not a child that a test made, which dies of a signal

void report(bool ok, const std::string &text, const char *file, int line)
{
	Catch::AssertionHandler handler("CHECK",
		Catch::SourceLineInfo(file, static_cast<std::size_t>(line)), text,
		Catch::ResultDisposition::ContinueOnFailure);
	if (ok) {
		handler.handleMessage(Catch::ResultWas::Ok, "");
	} else {
		std::string all;
		for (const auto &i : infos)
			all += i + "\n";
		if (first_fault.empty())
			first_fault = std::string(file) + ":" + std::to_string(line) + ": " + text;
		handler.handleMessage(Catch::ResultWas::ExpressionFailed, all);
	}
	handler.complete();
}

// Opened anew for each line: tests fork, and one that dies must not take lines with it.
void note(const char *outcome, const std::string &name, const std::string &why)
{
	const char *path = std::getenv("NTRACE_TEST_RAN");
	std::FILE *f = path && *path ? std::fopen(path, "ae") : nullptr;

	if (!f)
		return;
	std::fprintf(
		f, "%s\t%s%s%s\n", outcome, name.c_str(), why.empty() ? "" : "\t", why.c_str());
	std::fclose(f);
}

struct Listener : Catch::TestEventListenerBase {
	using TestEventListenerBase::TestEventListenerBase;

	void testCaseStarting(const Catch::TestCaseInfo &info) override
	{
		watchdog_test(info.name.c_str());
		infos.clear();
		skipped_now = false;
		lacks.clear();
		first_fault.clear();
	}
	void testCaseEnded(const Catch::TestCaseStats &stats) override
	{
		const char *outcome = "passed";

		if (getpid() != runner)
			return;
		if (stats.totals.testCases.failed) {
			counts->failed++;
			outcome = "failed";
			std::printf("failed: %s (%s)\n", stats.testInfo.name.c_str(),
				first_fault.empty() ? "a signal" : first_fault.c_str());
			std::fflush(stdout); // it may die of what failed
		} else if (skipped_now) {
			counts->skipped++;
			outcome = "skipped";
		} else {
			counts->passed++;
		}
		note(outcome, stats.testInfo.name, lacks);
	}
};
CATCH_REGISTER_LISTENER(Listener)

// ---- side by side -------------------------------------------------------------------------------

std::shared_ptr<Catch::Config> chosen;	    // the command line
std::vector<const Catch::TestCase *> tests; // what it asks for, in the order in which they begin

void choose(Catch::Session &session)
{
	chosen = std::make_shared<Catch::Config>(session.configData());
	Catch::getCurrentMutableContext().setConfig(chosen);
	for (const auto &t : Catch::getAllTestCasesSorted(*chosen))
		if (chosen->hasTestFilters() ? chosen->testSpec().matches(t) : !t.isHidden())
			tests.push_back(&t);
	std::stable_partition(tests.begin(), tests.end(),
		[](const Catch::TestCase *t) {
			return std::find(t->tags.begin(), t->tags.end(), "slow") != t->tags.end();
		});
}

void work(test_counts *c)
{
	Catch::RunContext context(chosen, Catch::makeReporter(chosen));

	counts = c;
	runner = getpid();
	context.testGroupStarting(chosen->name(), 1, 1);
	for (unsigned i; (i = workers_next()) != WORKERS_DONE;)
		context.runTest(*tests[i]);
	context.testGroupEnded(chosen->name(), Catch::Totals(), 1, 1);
	std::fflush(stdout);
}

void died(unsigned test, const char *how)
{
	const char *name =
		test == WORKERS_DONE ? "(after the last test)" : tests[test]->name.c_str();

	std::printf("failed: %s (the runner ended: %s)\n", name, how);
	if (test != WORKERS_DONE)
		note("failed", name, "");
}

void run_beside(Catch::Session &session, unsigned jobs)
{
	choose(session);
	const workers_plan plan = {
		static_cast<unsigned>(tests.size()), jobs, work, died};

	workers_run(&plan, &own_counts);
}

} // namespace

extern "C" void test_register(
	test_fn fn, const char *name, const char *tags, const char *file, int line)
{
	pending().push_back({fn, name, tags, file, line});
}

extern "C" bool test_check(bool ok, const char *text, const char *file, int line)
{
	report(ok, text, file, line);
	return ok;
}

extern "C" bool test_check_int(
	bool ok, long long a, long long b, const char *text, const char *file, int line)
{
	report(ok,
		ok ? text
		   : std::string(text) + "  [" + std::to_string(a) + " and " + std::to_string(b) +
				"]",
		file, line);
	return ok;
}

extern "C" bool test_check_str(
	const char *a, const char *b, const char *text, const char *file, int line)
{
	bool ok = a && b && std::string(a) == b;
	report(ok,
		ok ? text
		   : std::string(text) + "  [\"" + (a ? a : "(null)") + "\" and \"" +
				(b ? b : "(null)") + "\"]",
		file, line);
	return ok;
}

extern "C" void test_skip(const char *missing, const char *file, int line)
{
	// A skipped test counts as an assertion so that it is not mistaken for a test without any.
	report(true, std::string("skipped: ") + missing, file, line);
	skipped_now = true;
	lacks = missing;
	std::printf("skipped: %s (%s)\n", Catch::getResultCapture().getCurrentTestName().c_str(),
		missing);
}

extern "C" void test_info(const char *format, ...)
{
	char buf[1024];
	va_list ap;
	va_start(ap, format);
	std::vsnprintf(buf, sizeof(buf), format, ap);
	va_end(ap);
	infos.emplace_back(buf);
}

int main(int argc, char **argv)
{
	for (const auto &p : pending())
		Catch::getMutableRegistryHub().registerTest(Catch::makeTestCase(
			new Catch::TestInvokerAsFunction(p.fn), "",
			Catch::NameAndTags{p.name, p.tags},
			Catch::SourceLineInfo(p.file.c_str(), static_cast<std::size_t>(p.line))));

	Catch::Session session;
	session.configData().warnings = Catch::WarnAbout::NoAssertions;
	int bad = session.applyCommandLine(argc, argv);
	if (bad)
		return bad;
	const auto &data = session.configData();
	const bool lists =
		data.listTests || data.listTags || data.listTestNamesOnly || data.showHelp;
	const char *wish = std::getenv("NTRACE_TEST_JOBS");
	const int jobs = wish ? std::atoi(wish) : 1;
	int result = 0;

	runner = getpid();
	unsetenv("NTRACE_TEST_JOBS"); // tests run this program too
	if (jobs > 1 && !lists) {
		run_beside(session, static_cast<unsigned>(jobs));
	} else {
		if (!lists)
			watchdog_start();
		result = session.run();
	}
	std::printf("%lu passed, %lu failed, %lu skipped\n", counts->passed, counts->failed,
		counts->skipped);
	if (result == 0 && counts->passed + counts->skipped + counts->failed == 0 && !lists)
		return 2; // a filter that matches nothing is not a success
	return result || counts->failed ? 1 : 0;
}
