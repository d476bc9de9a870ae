/* SPDX-License-Identifier: Apache-2.0 */
/*
 * identity.c - instance types: from DMI, from the driver's generation, from numbers to texts.
 */
#include "runtime/device/identity.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/file.h"
#include "runtime/base/instance.h"
#include "runtime/device/device.h"

#define REVISION_MAX_SILICON 0xefu /* above: emulation, then qemu */

static const struct family {
	const char *word;
	uint32_t number, arch;
	const char *arch_name;
} families[] = {
#define INSTANCE_FAMILY(word, number, arch, arch_name) {word, number, arch, arch_name},
#define INSTANCE_SIZE(word, number)
#define INSTANCE(type, devices, cores, product)
#include "runtime/base/instances.def"
#undef INSTANCE_FAMILY
#undef INSTANCE_SIZE
#undef INSTANCE
};

static const struct {
	const char *word;
	uint32_t number;
} sizes[] = {
#define INSTANCE_FAMILY(word, number, arch, arch_name)
#define INSTANCE_SIZE(word, number) {word, number},
#define INSTANCE(type, devices, cores, product)
#include "runtime/base/instances.def"
#undef INSTANCE_FAMILY
#undef INSTANCE_SIZE
#undef INSTANCE
};

static const struct {
	const char *type;
	uint32_t devices, cores;
} shapes[] = {
#define INSTANCE_FAMILY(word, number, arch, arch_name)
#define INSTANCE_SIZE(word, number)
#define INSTANCE(type, devices, cores, product) {type, devices, cores},
#include "runtime/base/instances.def"
#undef INSTANCE_FAMILY
#undef INSTANCE_SIZE
#undef INSTANCE
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- words and numbers -------------------------------------------------------------------- */

static const struct family *family_by_word(const char *word, size_t length)
{
	for (size_t i = 0; i < COUNT(families); i++)
		if (strlen(families[i].word) == length &&
			strncmp(families[i].word, word, length) == 0)
			return &families[i];
	return NULL;
}

static const struct family *family_by_number(uint32_t number)
{
	for (size_t i = 0; i < COUNT(families); i++)
		if (families[i].number == number)
			return &families[i];
	return NULL;
}

void identity_parse(const char *type, uint32_t *ret_family, uint32_t *ret_size)
{
	size_t length = strcspn(type, ".");
	const struct family *family = family_by_word(type, length);

	*ret_family = family ? family->number : IDENTITY_FAMILY_UNKNOWN;
	if (strncmp(type, "EPIC-TGH7", 9) == 0)
		*ret_family = IDENTITY_FAMILY_TRN2;
	*ret_size = IDENTITY_SIZE_UNKNOWN;
	for (size_t i = 0; type[length] && i < COUNT(sizes); i++)
		if (strcmp(sizes[i].word, type + length + 1) == 0)
			*ret_size = sizes[i].number;
}

void identity_revision(uint32_t arch, uint32_t revision, char ret[8])
{
	/* What is no silicon counts as the first revision. */
	uint32_t step = revision <= REVISION_MAX_SILICON ? revision : 0;

	if (arch == DEVICE_ARCH_V4 && step == 0)
		(void)snprintf(ret, 8, "pre");
	else if (step < 26)
		(void)snprintf(ret, 8, "%c", (char)('A' + step));
	else
		(void)snprintf(ret, 8, "%u", step);
}

int identity_shape(const char *type, uint32_t *ret_devices, uint32_t *ret_cores, uint32_t *ret_arch)
{
	for (size_t i = 0; i < COUNT(shapes); i++) {
		if (strcmp(shapes[i].type, type) != 0)
			continue;
		*ret_devices = shapes[i].devices;
		*ret_cores = shapes[i].cores;
		*ret_arch = family_by_word(type, strcspn(type, "."))->arch;
		return 0;
	}
	return -ENOENT;
}

uint32_t identity_routing(uint32_t family, uint32_t ret[64])
{
	static const uint8_t torus[16] = INSTANCE_TRN1_TORUS;

	switch (family) {
	case IDENTITY_FAMILY_TRN1:
	case IDENTITY_FAMILY_TRN1N:
	case IDENTITY_FAMILY_INF2E:
		for (uint32_t i = 0; i < 16; i++)
			ret[torus[i]] = i;
		return 16;
	case IDENTITY_FAMILY_INF2:
		for (uint32_t i = 0; i < 12; i++)
			ret[i] = i;
		return 12;
	case IDENTITY_FAMILY_INF1:
		ret[0] = 0;
		return 1;
	default:
		return 0;
	}
}

/* ---- this machine ------------------------------------------------------------------------- */

static bool read_line(const char *root, const char *path, char *ret, size_t size)
{
	_cleanup_free_ char *text = device_read_text(root, path);

	if (!text)
		return false;
	text[strcspn(text, "\n")] = '\0';
	(void)snprintf(ret, size, "%s", text);
	return ret[0] != '\0';
}

static void read_product(const char *root, char *ret, size_t size)
{
	if (!read_line(root, "/sys/class/dmi/id/product_name", ret, size) &&
		!read_line(root, "/sys/devices/virtual/dmi/id/product_name", ret, size))
		ret[0] = '\0';
}

/* The type of the driver's generation ("Trn2") that has as many devices; ours. */
static void guess_type(const struct device_system *s, struct identity *id)
{
	char path[96], generation[16] = "";
	size_t length;

	(void)snprintf(path, sizeof(path),
		"/sys/class/neuron_device/neuron%u/info/architecture/instance_type",
		s->topology.first_index);
	if (!read_line(s->root, path, generation, sizeof(generation)))
		return;
	length = strlen(generation);
	for (char *p = generation; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	identity_parse(generation, &id->family, &id->size);
	for (size_t i = 0; i < COUNT(shapes); i++) {
		if (strncmp(shapes[i].type, generation, length) != 0 ||
			shapes[i].type[length] != '.' ||
			shapes[i].devices != s->topology.device_count ||
			shapes[i].cores != s->topology.cores_per_device)
			continue;
		(void)snprintf(id->type, sizeof(id->type), "%s", shapes[i].type);
		identity_parse(id->type, &id->family, &id->size);
		return;
	}
}

static const char *arch_name(uint32_t family, uint32_t arch)
{
	const struct family *f = family_by_number(family);

	for (size_t i = 0; !f && i < COUNT(families); i++)
		if (families[i].arch == arch)
			f = &families[i];
	return f ? f->arch_name : "";
}

void identity_read(const struct device_system *s, struct identity *ret)
{
	struct identity id = {.size = IDENTITY_SIZE_UNKNOWN};

	if (s->topology.simulated)
		(void)snprintf(id.type, sizeof(id.type), "%s", s->fake_instance);
	else
		read_product(s->root, id.type, sizeof(id.type));
	identity_parse(id.type, &id.family, &id.size);
	if (id.family == IDENTITY_FAMILY_UNKNOWN && s->is_virtual)
		guess_type(s, &id);
	if (id.family == IDENTITY_FAMILY_UNKNOWN && s->arch == DEVICE_ARCH_V4) {
		id.family = IDENTITY_FAMILY_TRN3;
		if (id.size == IDENTITY_SIZE_UNKNOWN)
			id.size = IDENTITY_SIZE_2XL;
	}
	(void)snprintf(id.arch_name, sizeof(id.arch_name), "%s", arch_name(id.family, s->arch));
	identity_revision(s->arch, s->revision, id.revision);
	*ret = id;
}
