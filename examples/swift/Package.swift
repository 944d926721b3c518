// swift-tools-version: 6.2
import PackageDescription

// In a package of your own the dependency would be a URL with a version.
let package = Package(
    name: "overtime-examples",
    dependencies: [.package(name: "overtime", path: "../..")],
    targets: [
        .executableTarget(
            name: "gateway", dependencies: [.product(name: "OvertimeClient", package: "overtime"), "CHTTP"]),
        .executableTarget(
            name: "subscriber", dependencies: [.product(name: "OvertimeClient", package: "overtime")]),
        .systemLibrary(
            name: "CHTTP", pkgConfig: "libmicrohttpd", providers: [.apt(["libmicrohttpd-dev"])]),
    ]
)
