import FoundationEssentials
import Testing

/// The rules of docs/architecture.md that the compiler does not keep: SwiftPM stops no import of a system module.
struct ArchitectureTests {
    /// Which of the package's own targets each may import: the arrows of Package.swift, never upwards.
    private static let arrows: [String: Set<String>] = [
        "RoomCore": [],
        "AMQP": ["CRabbitMQ"],
        "Service": [],
        "Metrics": [],
        "HTTP": ["Metrics", "Service", "CMicroHTTPD"],
        "Contract": ["RoomCore", "AMQP", "CJansson"],
        "Store": ["RoomCore", "CSQLite", "CPostgres"],
        "Worker": ["Store", "HTTP", "Metrics", "Service", "Contract", "AMQP", "RoomCore"],
        "Scheduler": ["HTTP", "Metrics", "Service", "Contract", "AMQP", "RoomCore"],
        "OvertimeClient": ["Service", "Contract", "AMQP", "RoomCore"],
        "overtime": [
            "Worker", "Scheduler", "OvertimeClient", "Store", "HTTP", "Service", "Contract", "AMQP",
            "RoomCore",
            "CGetopt", "CAllocator",
        ],
        "MemoryStore": ["Store", "RoomCore"],
        "Simulation": [
            "MemoryStore", "Worker", "Scheduler", "Store", "Service", "Contract", "AMQP", "RoomCore",
        ],
        "soak": ["Simulation", "Service"],
    ]

    /// Targets that are no part of the product and lie among the tests that need them.
    private static let outsideSources = ["Tests/MemoryStore", "Tests/Simulation", "Tests/soak"]

    /// Which modules of the system each may import. `Foundation` is in none of the services: its megabytes stay in
    /// every process for as long as it runs.
    private static let system: [String: Set<String>] = [
        "RoomCore": [],
        "Metrics": [],
        "Contract": ["Glibc", "FoundationEssentials", "Synchronization"],
        "OvertimeClient": ["Glibc", "FoundationEssentials", "Foundation", "Synchronization"],
        "overtime": ["Glibc", "FoundationEssentials", "Foundation", "Synchronization"],
    ]
    private static let usualSystem: Set<String> = ["Glibc", "FoundationEssentials", "Synchronization"]

    @Test("a target imports only what stands below it")
    func imports() throws {
        let files = try (["Sources"] + Self.outsideSources).flatMap(SourceTree.files(under:))
        #expect(files.count >= Self.arrows.count)
        for file in files {
            let own = try #require(Self.arrows[file.target], "\(file.path): a target without a rule")
            let allowed = own.union(Self.system[file.target] ?? Self.usualSystem)
            for name in file.imports where !allowed.contains(name) {
                Issue.record("\(file.path) imports \(name); \(file.target) may import \(allowed.sorted())")
            }
        }
    }

    @Test("the arrows are those of Package.swift")
    func arrowsArePackages() throws {
        let manifest = try String(
            contentsOf: SourceTree.root.appending(path: "Package.swift"), encoding: .utf8)
        var declared: [String: Set<String>] = [:]
        for kind in [".target(", ".executableTarget("] {
            for piece in manifest.pieces(after: kind) {
                let call = piece.pieces(before: "swiftSettings:").first ?? ""
                let quoted = call.split(separator: "\"", omittingEmptySubsequences: false).enumerated()
                    .filter { $0.offset % 2 == 1 }.map { String($0.element) }
                let name = try #require(quoted.first)
                declared[name] = Set(quoted.dropFirst()).subtracting(Self.outsideSources)
            }
        }
        #expect(declared == Self.arrows)
    }

    /// Where the time of day is read and where a thread waits for time to pass. Elsewhere both come in as values, so
    /// that every rule about time can be tested without waiting for it.
    @Test("no wall clock and no sleep outside the clock")
    func clocks() throws {
        let forbidden =
            [
                "clock_gettime", "gettimeofday", "Date()", "Date.now", "usleep", "nanosleep",
                "Task.sleep", "ContinuousClock", "SuspendingClock", " time(nil", "(time(nil",
            ] + (0...9).map { "sleep(\($0)" }
        for file in try (["Sources"] + Self.outsideSources).flatMap(SourceTree.files(under:))
        where file.path != "Sources/Service/Time/Clock.swift" {
            for (number, text) in file.code {
                let isMonotonic =
                    file.target == "AMQP" && text.contains("clock_gettime(CLOCK_MONOTONIC")
                guard let word = forbidden.first(where: { text.contains($0) }), !isMonotonic else { continue }
                Issue.record("\(file.path):\(number) uses \(word); time comes from Service/Time/Clock.swift")
            }
        }
    }

    @Test("nothing in the sources traps on what it did not expect")
    func traps() throws {
        for file in try SourceTree.files(under: "Sources") {
            for (number, text) in file.code {
                for word in ["try!", "as!"] where text.contains(word) {
                    Issue.record("\(file.path):\(number) uses \(word)")
                }
            }
        }
    }

    @Test("an unchecked promise of thread safety has its reason beside it")
    func unchecked() throws {
        for file in try SourceTree.files(under: "Sources") {
            for (number, text) in file.code
            where text.contains("@unchecked Sendable") || text.contains("nonisolated(unsafe)") {
                let beside = [number - 2, number].filter(file.lines.indices.contains).map { file.lines[$0] }
                let isReasoned = beside.contains { $0.drop { $0 == " " }.hasPrefix("//") }
                #expect(isReasoned, "\(file.path):\(number) gives no reason")
            }
        }
    }

    @Test("imports are read as the compiler reads them")
    func readsImports() {
        let file = SourceFile(
            path: "Sources/X/Y.swift",
            lines: [
                "import A", "internal import B", "@preconcurrency import C", "package import struct D.E",
                "// import F",
                "  @testable import G;", "let text = \"import H\"", "important(I)",
            ])
        #expect(file.imports == ["A", "B", "C", "D", "G"])
        #expect(file.target == "X")
    }
}

extension StringProtocol {
    /// What stands after each occurrence of a mark, up to the next.
    fileprivate func pieces(after mark: String) -> [String] {
        Array(pieces(before: mark).dropFirst())
    }

    /// The text cut at each occurrence of a mark.
    fileprivate func pieces(before mark: String) -> [String] {
        var pieces = [""]
        var rest = self[...]
        while !rest.isEmpty {
            if rest.hasPrefix(mark) {
                pieces.append("")
                rest = rest.dropFirst(mark.count)
            } else {
                pieces[pieces.count - 1].append(rest.removeFirst())
            }
        }
        return pieces
    }
}
