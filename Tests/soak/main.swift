import Glibc
import Service
import Simulation

// soak COUNT [FIRST]: runs seeds on all processors and ends with one line that counts them.
// soak crew COUNT [FIRST]: the same with several workers on one store.
// soak replay SEED [STEPS]: runs one seed and shows its last steps, whatever came of it.

var arguments = CommandLine.arguments.dropFirst()
let isCrew = arguments.first == "crew"
if isCrew { arguments = arguments.dropFirst() }
switch (arguments.first, arguments.count) {
case ("replay", 2...3):
    let numbers = Array(arguments.dropFirst())
    guard let seed = UInt64(numbers[0]), let kept = numbers.count == 2 ? Int(numbers[1]) : 60
    else { usage() }
    exit(Soak.replay(seed, isCrew: isCrew, showing: kept) ? 0 : 1)
case (let count?, 1...2):
    guard let count = UInt64(count),
        let first = arguments.count == 1 ? 1 : arguments.last.flatMap(UInt64.init)
    else { usage() }
    let soak = Soak(first: first, count: count, isCrew: isCrew)
    let isClean = soak.run()
    print(soak.summary)
    exit(isClean ? 0 : 1)
default:
    usage()
}

func usage() -> Never {
    print("usage: soak [crew] COUNT [FIRST] | soak [crew] replay SEED [STEPS]")
    exit(2)
}
