import Glibc
import Service
import Simulation

// soak COUNT [FIRST]: runs seeds on all processors and ends with one line that counts them.
// soak replay SEED [STEPS]: runs one seed and shows its last steps, whatever came of it.

let arguments = CommandLine.arguments.dropFirst()
switch (arguments.first, arguments.count) {
case ("replay", 2...3):
    guard let seed = UInt64(arguments[2]), let kept = arguments.count == 3 ? Int(arguments[3]) : 60
    else { usage() }
    exit(Soak.replay(seed, showing: kept) ? 0 : 1)
case (let count?, 1...2):
    guard let count = UInt64(count),
        let first = arguments.count == 1 ? 1 : arguments.last.flatMap(UInt64.init)
    else { usage() }
    let soak = Soak(first: first, count: count)
    let isClean = soak.run()
    print(soak.summary)
    exit(isClean ? 0 : 1)
default:
    usage()
}

func usage() -> Never {
    print("usage: soak COUNT [FIRST] | soak replay SEED [STEPS]")
    exit(2)
}
