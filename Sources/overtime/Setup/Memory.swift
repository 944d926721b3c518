import CAllocator

/// How the services keep memory: jemalloc takes the place of the C library's allocator.
///
/// A message is read on one thread and freed on another. With an arena for each thread and thresholds that grow with
/// what was once freed, the C library's resident memory crept up by 8 % between 50,000 and 200,000 commands; with one
/// arena and fixed thresholds it stayed, but all threads shared that arena's lock.
enum Memory {
    /// How long freed pages may stay in hand: long enough for the next batch. They go with the next use of the same arena, so
    /// a process that falls idle keeps what its last burst freed.
    private static let decayMilliseconds: Int = 1_000

    /// To be called before any thread is started.
    static func keepFlat() {
        var decay = decayMilliseconds
        for name in ["arenas.dirty_decay_ms", "arena.0.dirty_decay_ms"] {
            mallctl(name, nil, nil, &decay, MemoryLayout<Int>.size)
        }
    }
}
