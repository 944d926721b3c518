// Runs a program and kills it with SIGKILL just before its nth system call of one kind, or counts them all.
//
//   killpoint REPORT DIRECTORY [POINT N] -- PROGRAM ARGUMENT…
//
// A step is a system call on a socket or on a file in DIRECTORY; everything else (libraries, time zones, wake-ups, the
// log) is none. POINT is THREAD/SYSCALL/TARGET as the report names them, such as "overtime#1/fdatasync/wal": the nth
// thread of that name, in order of creation, so that each thread's steps are counted by themselves. `strace -f -e
// inject=…:when=N` counts for each thread as well but kills whichever comes to N first, so that what the thread with
// fewer calls does is never met; hence this program.
//
// REPORT gets a line "killed POINT N" before the kill, and in any case at the end the counts, "POINT N" a line.
// The program keeps the process that was started, with its pid, its parent and its output; the tracer is a child of it.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/ptrace.h>

// What tells where the call goes: a descriptor, a path, or a path behind a directory's descriptor.
enum Where { DESCRIPTOR, PATH, PATH_AT };

static const struct Call {
    long number;
    const char *name;
    enum Where where;
} calls[] = {
    {SYS_read, "read", DESCRIPTOR},
    {SYS_readv, "readv", DESCRIPTOR},
    {SYS_pread64, "pread64", DESCRIPTOR},
    {SYS_recvfrom, "recvfrom", DESCRIPTOR},
    {SYS_recvmsg, "recvmsg", DESCRIPTOR},
    {SYS_write, "write", DESCRIPTOR},
    {SYS_writev, "writev", DESCRIPTOR},
    {SYS_pwrite64, "pwrite64", DESCRIPTOR},
    {SYS_sendto, "sendto", DESCRIPTOR},
    {SYS_sendmsg, "sendmsg", DESCRIPTOR},
    {SYS_fsync, "fsync", DESCRIPTOR},
    {SYS_fdatasync, "fdatasync", DESCRIPTOR},
    {SYS_ftruncate, "ftruncate", DESCRIPTOR},
    {SYS_fallocate, "fallocate", DESCRIPTOR},
    {SYS_flock, "flock", DESCRIPTOR},
    {SYS_connect, "connect", DESCRIPTOR},
    {SYS_shutdown, "shutdown", DESCRIPTOR},
    {SYS_close, "close", DESCRIPTOR},
    {SYS_openat, "openat", PATH_AT},
    {SYS_unlinkat, "unlinkat", PATH_AT},
    {SYS_renameat2, "renameat2", PATH_AT},
    {SYS_mkdirat, "mkdirat", PATH_AT},
#ifdef SYS_open
    {SYS_open, "open", PATH},
#endif
#ifdef SYS_unlink
    {SYS_unlink, "unlink", PATH},
#endif
#ifdef SYS_rename
    {SYS_rename, "rename", PATH},
#endif
};
enum { CALLS = sizeof calls / sizeof calls[0], POINTS = 1024, THREADS = 1024, NAME = 96 };

struct Point {
    char name[NAME];
    unsigned long count;
};
struct Thread {
    pid_t id;
    char name[32];
};

static struct Point points[POINTS];
static struct Thread threads[THREADS];
static int pointCount, threadCount;

static void fail(const char *what) {
    fprintf(stderr, "killpoint: %s: %s\n", what, strerror(errno));
    _exit(125);
}

static void nameOf(pid_t process, pid_t id, char name[20]) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/comm", process, id);
    strcpy(name, "?");
    FILE *file = fopen(path, "r");
    if (!file) return;
    if (fgets(name, 20, file)) name[strcspn(name, "\n")] = 0;
    fclose(file);
}

// How many threads older than this one have its name; -1 if one has yet to take its own and still has the process's.
static int olderOfThatName(pid_t process, pid_t id, const char *name) {
    char path[64], other[20], first[20];
    int older = 0, unnamed = 0;
    nameOf(process, process, first);
    snprintf(path, sizeof path, "/proc/%d/task", process);
    DIR *tasks = opendir(path);
    for (struct dirent *entry; tasks && (entry = readdir(tasks));) {
        pid_t task = atoi(entry->d_name);
        if (task <= 0 || task >= id) continue;
        nameOf(process, task, other);
        older += strcmp(other, name) == 0;
        unnamed += task != process && strcmp(other, first) == 0;
    }
    if (tasks) closedir(tasks);
    return unnamed ? -1 : older;
}

// The thread's name with its rank among those of that name, oldest first. Asked at its first step, when it has its name.
static const char *threadName(pid_t process, pid_t id) {
    for (int i = 0; i < threadCount; i++) {
        if (threads[i].id == id) return threads[i].name;
    }
    if (threadCount == THREADS) fail("too many threads");
    char name[20];
    nameOf(process, id, name);
    int older = olderOfThatName(process, id, name);
    for (int i = 0; i < 100 && older < 0; i++) {
        usleep(1000);
        older = olderOfThatName(process, id, name);
    }
    for (char *c = name; *c; c++) {
        if (*c == ' ' || *c == '/') *c = '-';
    }
    struct Thread *thread = &threads[threadCount++];
    thread->id = id;
    snprintf(thread->name, sizeof thread->name, "%s#%d", name, older < 0 ? 1 : older + 1);
    return thread->name;
}

static struct Point *pointNamed(const char *name) {
    for (int i = 0; i < pointCount; i++) {
        if (strcmp(points[i].name, name) == 0) return &points[i];
    }
    if (pointCount == POINTS) fail("too many kinds of steps");
    struct Point *point = &points[pointCount++];
    snprintf(point->name, sizeof point->name, "%s", name);
    return point;
}

// A word for a file of the store, NULL for one that is none of ours.
static const char *targetOfPath(const char *path, const char *directory) {
    if (strncmp(path, directory, strlen(directory)) != 0) return NULL;
    static const char *const endings[][2] = {
        {"-wal", "wal"}, {"-journal", "journal"}, {"-shm", "shm"}, {".lock", "lock"}, {".db", "database"}};
    size_t length = strlen(path);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t ending = strlen(endings[i][0]);
        if (length >= ending && strcmp(path + length - ending, endings[i][0]) == 0) return endings[i][1];
    }
    return "directory";
}

static const char *target(
    const struct Call *call, pid_t process, const struct ptrace_syscall_info *info, const char *directory) {
    char path[PATH_MAX] = "";
    if (call->where == DESCRIPTOR) {
        char link[64];
        snprintf(link, sizeof link, "/proc/%d/fd/%d", process, (int)info->seccomp.args[0]);
        ssize_t length = readlink(link, path, sizeof path - 1);
        if (length < 0) return NULL;
        path[length] = 0;
        if (strncmp(path, "socket:", 7) == 0) return "socket";
    } else {
        unsigned long address = info->seccomp.args[call->where == PATH ? 0 : 1];
        // A page at a time at most, as the next one may not be there.
        size_t size = 4096 - address % 4096;
        struct iovec local = {path, size < sizeof path ? size : sizeof path - 1};
        struct iovec remote = {(void *)address, local.iov_len};
        if (process_vm_readv(process, &local, 1, &remote, 1, 0) <= 0) return NULL;
    }
    return targetOfPath(path, directory);
}

static void writeCounts(FILE *report) {
    for (int i = 0; i < pointCount; i++) fprintf(report, "%s %lu\n", points[i].name, points[i].count);
    fclose(report);
}

static void trace(pid_t process, FILE *report, const char *directory, const char *wanted, unsigned long nth) {
    while (1) {
        int status;
        pid_t id = waitpid(-1, &status, __WALL);
        if (id < 0) {
            if (errno == EINTR) continue;
            break;
        }
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            if (id == process) break;
            continue;
        }
        int signal = WSTOPSIG(status), event = status >> 16;
        if (event == PTRACE_EVENT_SECCOMP) {
            struct ptrace_syscall_info info;
            if (ptrace(PTRACE_GET_SYSCALL_INFO, id, sizeof info, &info) > 0) {
                for (int i = 0; i < CALLS; i++) {
                    if ((unsigned long)calls[i].number != info.seccomp.nr) continue;
                    const char *place = target(&calls[i], process, &info, directory);
                    if (!place) break;
                    char name[NAME];
                    snprintf(name, sizeof name, "%s/%s/%s", threadName(process, id), calls[i].name, place);
                    struct Point *point = pointNamed(name);
                    point->count++;
                    if (wanted && point->count == nth && strcmp(name, wanted) == 0) {
                        fprintf(report, "killed %s %lu\n", name, nth);
                        writeCounts(report);
                        kill(process, SIGKILL);
                        while (waitpid(-1, &status, __WALL) > 0 || errno == EINTR) {}
                        return;
                    }
                    break;
                }
            }
            ptrace(PTRACE_CONT, id, 0, 0);
        } else if (event == PTRACE_EVENT_STOP && (signal == SIGSTOP || signal == SIGTSTP)) {
            ptrace(PTRACE_LISTEN, id, 0, 0);
        } else {
            ptrace(PTRACE_CONT, id, 0, event ? 0 : signal);
        }
    }
    writeCounts(report);
}

static void filter(void) {
    struct sock_filter code[2 * CALLS + 2];
    int length = 0;
    code[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < CALLS; i++) {
        code[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i].number, 0, 1);
        code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
    }
    code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {(unsigned short)length, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) fail("no new privileges");
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0) fail("seccomp");
}

int main(int count, char **arguments) {
    const char *wanted = NULL;
    unsigned long nth = 0;
    int program = 4;
    if (count > 6 && strcmp(arguments[5], "--") == 0) {
        wanted = arguments[3];
        nth = strtoul(arguments[4], NULL, 10);
        program = 6;
    } else if (count <= 4 || strcmp(arguments[3], "--") != 0) {
        fprintf(stderr, "usage: killpoint REPORT DIRECTORY [POINT N] -- PROGRAM ARGUMENT…\n");
        return 125;
    }
    int ready[2];
    if (pipe2(ready, O_CLOEXEC) < 0) fail("pipe");
    pid_t process = getpid(), tracer = fork();
    if (tracer < 0) fail("fork");
    if (tracer == 0) {
        // Not in the way of a signal to the group, nor of who waits for the program's output to end.
        setsid();
        FILE *report = fopen(arguments[1], "we");
        if (!report) fail(arguments[1]);
        long options = PTRACE_O_TRACECLONE | PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL;
        while (ptrace(PTRACE_SEIZE, process, 0, options) < 0) {
            if (errno != EPERM || getppid() != process) fail("seize");
        }
        if (write(ready[1], "x", 1) != 1) fail("write");
        for (int i = 0; i < 3; i++) close(i);
        trace(process, report, arguments[2], wanted, nth);
        _exit(0);
    }
    prctl(PR_SET_PTRACER, tracer, 0, 0, 0);
    char byte;
    close(ready[1]);
    if (read(ready[0], &byte, 1) != 1) fail("the tracer did not start");
    filter();
    execvp(arguments[program], arguments + program);
    fail(arguments[program]);
}
