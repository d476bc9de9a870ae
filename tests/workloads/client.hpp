/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.hpp - what clients in C++ share: tensors, a model that adds on one core, and answers that must be right.
 *
 * Over the public headers alone.
 */
#ifndef NTRACE_TESTS_CLIENT_HPP
#define NTRACE_TESTS_CLIENT_HPP

#include <string>
#include <vector>

#include <nrt/nrt.h>

namespace client {

struct Failure {
	std::string what;
};

inline void want(bool ok, const std::string &what)
{
	if (!ok)
		throw Failure{what};
}

inline void want(NRT_STATUS status, const std::string &what)
{
	want(status == NRT_SUCCESS, what + " gave status " + std::to_string(int(status)));
}

const uint32_t core = 1;
const size_t elements = 1024, bytes = elements * sizeof(float);
/* A run of it takes 50 us. */
const char model_text[] = "ntrace-model 2\nname add_kernel\ninput a float32 1024\n"
			  "input b float32 512\ninput d float32 512\ntemp t float32 512\n"
			  "output c float32 512\nstep PE 40us add b d t\nstep PE 10us add t d c\n";

class Tensor {
public:
	Tensor(const char *name, size_t size)
	{
		want(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, int(core), size, name, &t_),
			"nrt_tensor_allocate");
	}
	Tensor(const Tensor &source, size_t offset, size_t size)
	{
		want(nrt_tensor_allocate_slice(source.t_, offset, size, "slice", &t_),
			"nrt_tensor_allocate_slice");
	}
	Tensor(const Tensor &) = delete;
	Tensor &operator=(const Tensor &) = delete;
	~Tensor()
	{
		nrt_tensor_free(&t_);
	}
	void write(const std::vector<float> &values)
	{
		want(nrt_tensor_write(t_, values.data(), 0, values.size() * sizeof(float)),
			"nrt_tensor_write");
	}
	std::vector<float> read() const
	{
		std::vector<float> values(nrt_tensor_get_size(t_) / sizeof(float));

		want(nrt_tensor_read(t_, values.data(), 0, values.size() * sizeof(float)),
			"nrt_tensor_read");
		return values;
	}
	void add_to(nrt_tensor_set_t *set, const char *name) const
	{
		want(nrt_add_tensor_to_tensor_set(set, name, t_), "nrt_add_tensor_to_tensor_set");
	}

private:
	nrt_tensor_t *t_ = nullptr;
};

class TensorSet {
public:
	TensorSet()
	{
		want(nrt_allocate_tensor_set(&set_), "nrt_allocate_tensor_set");
	}
	TensorSet(const TensorSet &) = delete;
	TensorSet &operator=(const TensorSet &) = delete;
	~TensorSet()
	{
		nrt_destroy_tensor_set(&set_);
	}
	nrt_tensor_set_t *get() const
	{
		return set_;
	}

private:
	nrt_tensor_set_t *set_ = nullptr;
};

struct Job {
	Tensor a{"a", bytes}, b{a, bytes / 2, bytes / 2}, d{"d", bytes / 2}, c{"c", bytes / 2};
	TensorSet in, out;
	nrt_model_t *model = nullptr;

	Job()
	{
		a.add_to(in.get(), "a");
		b.add_to(in.get(), "b");
		d.add_to(in.get(), "d");
		c.add_to(out.get(), "c");
		want(nrt_load(model_text, sizeof(model_text) - 1, int(core), 1, &model), "nrt_load");
	}
	void run(float more)
	{
		std::vector<float> values(elements), half(elements / 2);

		for (size_t i = 0; i < elements; i++)
			values[i] = float(i) + more;
		for (size_t i = 0; i < elements / 2; i++)
			half[i] = 3 * float(i);
		a.write(values);
		d.write(half);
		want(nrt_execute(model, in.get(), out.get()), "nrt_execute");
		std::vector<float> got = c.read();
		want(got.size() == elements / 2, "the result has the size of the output");
		for (size_t i = 0; i < got.size(); i++)
			want(got[i] == values[i + elements / 2] + 2 * half[i],
				"element " + std::to_string(i) + " of the result is right");
	}
};

} // namespace client

#endif
