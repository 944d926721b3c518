/* A parser that dies of one text: stands before Jansson's json_loadb by LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

void *json_loadb(const char *buffer, size_t length, size_t flags, void *error)
{
    static const char deadly[] = "poison pill";
    void *(*real)(const char *, size_t, size_t, void *) = dlsym(RTLD_NEXT, "json_loadb");
    if (memmem(buffer, length, deadly, sizeof deadly - 1) || !real)
        abort();
    return real(buffer, length, flags, error);
}
