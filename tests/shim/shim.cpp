// SPDX-License-Identifier: Apache-2.0
//
// shim.cpp - the one C++ file: turns C functions into Catch2 test cases.
//
// Catch2 throws to leave a failed REQUIRE; here nothing throws across C frames: checks report
// through CHECKED_ELSE-like calls and the C macro returns.  The runner prints one line per skipped
// and per failed test and ends with `N passed, N failed, N skipped`.  With NTRACE_TEST_RAN=FILE it adds a line
// per test to that file: `passed`, `failed` or `skipped`, a tab, the name; of a skipped one a tab and what is missing.

#define CATCH_CONFIG_RUNNER
#define CATCH_CONFIG_PREFIX_ALL // the short macro names belong to shim.h
#include <catch2/catch.hpp>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/shim/shim.h"
#include "tests/shim/watchdog.h"

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
std::string lacks; // why, then
std::string first_fault; // of the test: file, line, what was not so
unsigned long passed, failed, skipped;

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
	std::fprintf(f, "%s\t%s%s%s\n", outcome, name.c_str(), why.empty() ? "" : "\t", why.c_str());
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

		if (stats.totals.testCases.failed) {
			failed++;
			outcome = "failed";
			std::printf("failed: %s (%s)\n", stats.testInfo.name.c_str(), first_fault.c_str());
		} else if (skipped_now) {
			skipped++;
			outcome = "skipped";
		} else {
			passed++;
		}
		note(outcome, stats.testInfo.name, lacks);
	}
};
CATCH_REGISTER_LISTENER(Listener)

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
	report(ok, ok ? text : std::string(text) + "  [" + std::to_string(a) + " and " +
				std::to_string(b) + "]",
		file, line);
	return ok;
}

extern "C" bool test_check_str(
	const char *a, const char *b, const char *text, const char *file, int line)
{
	bool ok = a && b && std::string(a) == b;
	report(ok, ok ? text : std::string(text) + "  [\"" + (a ? a : "(null)") + "\" and \"" +
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
	std::printf("skipped: %s (%s)\n",
		Catch::getResultCapture().getCurrentTestName().c_str(), missing);
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
		Catch::getMutableRegistryHub().registerTest(
			Catch::makeTestCase(new Catch::TestInvokerAsFunction(p.fn), "",
				Catch::NameAndTags{p.name, p.tags},
				Catch::SourceLineInfo(p.file.c_str(),
					static_cast<std::size_t>(p.line))));

	Catch::Session session;
	session.configData().warnings = Catch::WarnAbout::NoAssertions;
	int bad = session.applyCommandLine(argc, argv);
	if (bad)
		return bad;
	if (!session.configData().listTests)
		watchdog_start();
	int result = session.run();
	std::printf("%lu passed, %lu failed, %lu skipped\n", passed, failed, skipped);
	if (result == 0 && passed + skipped == 0 && !session.configData().listTests)
		return 2; // a filter that matches nothing is not a success
	return result ? 1 : 0;
}
