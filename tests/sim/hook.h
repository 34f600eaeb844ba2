/*
 * The driver's callback table (facts.md, "The callback table") and the events that are announced through it
 * (facts.md, "Callbacks", and hardware.md).
 *
 * No lock is held while a callback runs: it may call any function of the driver.
 */
#ifndef SIM_HOOK_H
#define SIM_HOOK_H

#include "api.h"

/* A subscription that has not declared the feature makes the driver refuse green contexts (facts.md, "The callback
 * table"). */
bool hook_hides_green_contexts(void);

bool hook_is_in_callback(void);

enum hook_context_event {
	CONTEXT_CREATED = 1,
	CONTEXT_DESTROY_STARTING,
	CONTEXT_DESTROYED /* the handle is only a number now */
};
void hook_context(enum hook_context_event event, CUcontext context);

/* 2/17: the code of a module, in host memory; the driver's own, or the program's. */
void hook_module_loaded(CUcontext context, CUmodule module, const void *code, size_t size, bool is_drivers);

/* 0xb/1: `qmd` is the descriptor in host memory, about to be uploaded. */
void hook_before_upload(CUcontext context, CUfunction function, void *qmd);

/* Ends a test that launches a kernel in that callback, or in one for a call that was made in it (hardware.md,
 * "Callbacks"). */
void hook_check_launch(const char *kernel);

/* 0x12/2, 6 and 4: a segment of commands is in the pushbuffer, and the ring has its entry; where; the GPU has been
 * told. */
struct hook_segment {
	CUcontext context;
	const void *segment;
	uint32_t bytes, channel;
	const void *ring;
	uint32_t put; /* the entry */
};
void hook_segment(const struct hook_segment *segment);

/* 0xb/3: a kernel node, in every launch of its graph. */
void hook_graph_node_launch(CUcontext context, CUfunction function, void *qmd);

/*
 * Domain 6: entry and exit of a function of the driver. `arguments` are its arguments in order, as a struct; a callback
 * may replace them at entry, so the function must use the values after the callback.
 */
struct hook_call {
	enum api_id id;
	const char *name;
	void *arguments;
	CUresult result;
};

void hook_enter(struct hook_call *call, enum api_id id, const char *name, void *arguments);
CUresult hook_leave(struct hook_call *call, CUresult result);

#define HOOK_ENTER(call, function, arguments) hook_enter(call, API_ID_##function, #function, arguments)

/* The head of the driver's function `name`, which is announced, and whose body has the arguments as a callback has
 * left them: their types and names. Called from here, do_##name is announced to nobody. */
#define HOOKED_1(name, A, a) HOOKED(name, (A a), (arguments.a), A a;, a)
#define HOOKED_2(name, A, a, B, b) HOOKED(name, (A a, B b), (arguments.a, arguments.b), A a; B b;, a, b)
#define HOOKED_3(name, A, a, B, b, C, c)                                                                                           \
	HOOKED(name, (A a, B b, C c), (arguments.a, arguments.b, arguments.c), A a; B b; C c;, a, b, c)
#define HOOKED_4(name, A, a, B, b, C, c, D, d)                                                                                     \
	HOOKED(name, (A a, B b, C c, D d), (arguments.a, arguments.b, arguments.c, arguments.d), A a; B b; C c; D d;, a, b, c, d)
#define HOOKED_5(name, A, a, B, b, C, c, D, d, E, e)                                                                               \
	HOOKED(name, (A a, B b, C c, D d, E e), (arguments.a, arguments.b, arguments.c, arguments.d, arguments.e),                 \
	       A a; B b; C c; D d; E e;, a, b, c, d, e)
#define HOOKED_6(name, A, a, B, b, C, c, D, d, E, e, F, f)                                                                         \
	HOOKED(name, (A a, B b, C c, D d, E e, F f),                                                                               \
	       (arguments.a, arguments.b, arguments.c, arguments.d, arguments.e, arguments.f),                                     \
	       A a; B b; C c; D d; E e; F f;, a, b, c, d, e, f)
#define HOOKED(name, parameters, passed, members, ...)                                                                             \
	static CUresult do_##name parameters;                                                                                      \
	CUresult name parameters                                                                                                   \
	{                                                                                                                          \
		struct {                                                                                                           \
			members                                                                                                    \
		} arguments = {__VA_ARGS__};                                                                                       \
		struct hook_call call;                                                                                             \
                                                                                                                                   \
		HOOK_ENTER(&call, name, &arguments);                                                                               \
		return hook_leave(&call, do_##name passed);                                                                        \
	}                                                                                                                          \
	static CUresult do_##name parameters

#endif
