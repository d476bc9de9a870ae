/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_members_test.c - what an inspect session says of itself is the same in the header of its
 * recording and in trace_info.pb.
 */
#include <string.h>

#include "proto/neuron_trace.pb-c.h"
#include "runtime/record/rec_session.h"
#include "tests/shim/shim.h"

#define BESIDE 2u /* off and driver, which are no members */

static const ProtobufCFieldDescriptor *field(const char *name)
{
	return protobuf_c_message_descriptor_get_field_by_name(
		&ntff__ntrace_session__descriptor, name);
}

TEST("session members: each is a field of ntrace_session, and each field is a member",
	"[inspect][spool]")
{
	static const struct {
		ProtobufCType type;
		ProtobufCLabel label;
	} forms[] = {
		[SESSION_NUMBER] = {PROTOBUF_C_TYPE_INT64, PROTOBUF_C_LABEL_NONE},
		[SESSION_TEXT] = {PROTOBUF_C_TYPE_STRING, PROTOBUF_C_LABEL_NONE},
		[SESSION_LIST] = {PROTOBUF_C_TYPE_STRING, PROTOBUF_C_LABEL_REPEATED},
	};
	static const struct rec_session none;
	struct rec_session_value v;
	size_t n = 0;

	for (; rec_session_value(&none, n, &v); n++) {
		const ProtobufCFieldDescriptor *f = field(v.key);

		test_info("%s", v.key);
		REQUIRE(f != NULL);
		CHECK_EQ(f->type, forms[v.kind].type);
		CHECK_EQ(f->label, forms[v.kind].label);
	}
	CHECK(field("off") && field("driver"));
	CHECK_EQ(n + BESIDE, ntff__ntrace_session__descriptor.n_fields);
}
