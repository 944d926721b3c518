import Contract
import Glibc
import Testing

@Suite("Memory of the C parser")
struct MemoryTests {
    @Test("what Jansson allocates is given back, for documents that parse and that do not")
    func noLeak() throws {
        let numbers = [String](repeating: "1", count: 10_000).joined(separator: ",")
        let before = try #require(Self.residentBytes())
        for _ in 0..<100 {
            _ = StrictJSON.parse(Array("[\(numbers)]".utf8))
            _ = StrictJSON.parse(Array("[\(numbers),]".utf8))
        }
        // Leaked, each document would leave some 400 kB.
        let growth = try #require(Self.residentBytes()) - before
        #expect(growth < 30_000_000)
    }

    /// The second number of `/proc/self/statm`, in pages.
    private static func residentBytes() -> Int? {
        guard let file = fopen("/proc/self/statm", "r") else { return nil }
        defer { fclose(file) }
        var buffer = [UInt8](repeating: 0, count: 256)
        let count = fread(&buffer, 1, buffer.count, file)
        let words = String(decoding: buffer.prefix(count), as: UTF8.self).split(separator: " ")
        return words.count > 1 ? Int(words[1]).map { $0 * sysconf(Int32(_SC_PAGESIZE)) } : nil
    }
}
