// swift-tools-version: 6.2
import PackageDescription

/// Settings of every Swift target: the language's strictest, so that a mistake is an error and not a habit.
let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
]

/// The targets of docs/architecture.md; a target imports only what stands below it here.
let package = Package(
    name: "overtime",
    products: [
        .executable(name: "overtime", targets: ["overtime"]),
        .library(name: "OvertimeClient", targets: ["OvertimeClient"]),
    ],
    targets: [
        .executableTarget(
            name: "overtime",
            dependencies: [
                "Worker", "Scheduler", "OvertimeClient", "Store", "HTTP", "Service", "Contract", "AMQP",
                "RoomCore",
                "CGetopt", "CAllocator",
            ],
            swiftSettings: strict),
        .target(
            name: "Worker",
            dependencies: ["Store", "HTTP", "Metrics", "Service", "Contract", "AMQP", "RoomCore"],
            swiftSettings: strict),
        .target(
            name: "Scheduler", dependencies: ["HTTP", "Metrics", "Service", "Contract", "AMQP", "RoomCore"],
            swiftSettings: strict),
        .target(
            name: "OvertimeClient", dependencies: ["Service", "Contract", "AMQP", "RoomCore"],
            swiftSettings: strict),
        .target(name: "Store", dependencies: ["RoomCore", "CSQLite", "CPostgres"], swiftSettings: strict),
        .target(name: "Contract", dependencies: ["RoomCore", "AMQP", "CJansson"], swiftSettings: strict),
        .target(name: "HTTP", dependencies: ["Metrics", "Service", "CMicroHTTPD"], swiftSettings: strict),
        .target(name: "Metrics", swiftSettings: strict),
        .target(name: "Service", swiftSettings: strict),
        .target(name: "AMQP", dependencies: ["CRabbitMQ"], swiftSettings: strict),
        .target(name: "RoomCore", swiftSettings: strict),

        .systemLibrary(name: "CRabbitMQ", pkgConfig: "librabbitmq", providers: [.apt(["librabbitmq-dev"])]),
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(name: "CPostgres", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
        .systemLibrary(
            name: "CMicroHTTPD", pkgConfig: "libmicrohttpd", providers: [.apt(["libmicrohttpd-dev"])]),
        .systemLibrary(name: "CAllocator", pkgConfig: "jemalloc", providers: [.apt(["libjemalloc-dev"])]),
        .systemLibrary(name: "CGetopt"),
        .systemLibrary(name: "CJansson", pkgConfig: "jansson", providers: [.apt(["libjansson-dev"])]),

        .testTarget(name: "RoomCoreTests", dependencies: ["RoomCore"], swiftSettings: strict),
        .testTarget(
            name: "ContractTests", dependencies: ["Contract", "AMQP", "RoomCore"], swiftSettings: strict),
        .testTarget(name: "AMQPTests", dependencies: ["AMQP"], swiftSettings: strict),
        .testTarget(
            name: "StoreTests", dependencies: ["MemoryStore", "Store", "RoomCore", "CSQLite", "CPostgres"],
            swiftSettings: strict),
        .testTarget(name: "ServiceTests", dependencies: ["Service"], swiftSettings: strict),
        .testTarget(name: "MetricsTests", dependencies: ["Metrics"], swiftSettings: strict),
        .testTarget(name: "HTTPTests", dependencies: ["HTTP", "Metrics", "Service"], swiftSettings: strict),
        .testTarget(
            name: "WorkerTests",
            dependencies: [
                "MemoryStore", "Worker", "Store", "Metrics", "Service", "Contract", "AMQP", "RoomCore",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "SchedulerTests",
            dependencies: ["Scheduler", "Metrics", "Service", "Contract", "AMQP", "RoomCore"],
            swiftSettings: strict),
        .testTarget(
            name: "OvertimeClientTests",
            dependencies: ["OvertimeClient", "Service", "Contract", "AMQP", "RoomCore"],
            swiftSettings: strict),
        .testTarget(
            name: "SimulationTests", dependencies: ["Simulation"], swiftSettings: strict),
        .testTarget(name: "ArchitectureTests", swiftSettings: strict),

        // What tests are built on: no part of the product, and named in no product of the package.
        .target(
            name: "MemoryStore", dependencies: ["Store", "RoomCore"], path: "Tests/MemoryStore",
            swiftSettings: strict),
        .target(
            name: "Simulation",
            dependencies: [
                "MemoryStore", "Worker", "Scheduler", "Store", "Service", "Contract", "AMQP", "RoomCore",
            ],
            path: "Tests/Simulation", swiftSettings: strict),
        .executableTarget(
            name: "soak", dependencies: ["Simulation", "Service"], path: "Tests/soak", swiftSettings: strict),
    ]
)
