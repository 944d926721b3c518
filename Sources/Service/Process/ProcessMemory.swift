import Glibc

/// How much memory this process has, as the kernel counts it.
package enum ProcessMemory {
    /// What is in RAM; nil where the kernel does not say.
    package static var residentBytes: Int64? {
        guard case .success(let bytes) = FileText.bytes(path: "/proc/self/statm", limit: 4_096) else {
            return nil
        }
        let words = bytes.split(separator: UInt8(ascii: " "))
        guard words.count > 1, let pages = Int64(String(decoding: words[1], as: UTF8.self)) else {
            return nil
        }
        let (size, isTooLarge) = pages.multipliedReportingOverflow(by: Int64(sysconf(Int32(_SC_PAGESIZE))))
        return isTooLarge ? nil : size
    }
}
