/// Bodies that are no valid command, each with a piece of what must be said about it.
enum WrongCommands {
    /// Bodies that are wrong in the envelope: what they are, and a piece of what is said about them.
    static let envelopes: [(String, String)] = [
        ("nonsense", "not valid JSON at line 1, column 8"),
        ("[]", "must be one JSON object, not an array"),
        ("\"open\"", "must be one JSON object, not a string"),
        ("17", "must be one JSON object, not an integer"),
        ("1.5", "must be one JSON object, not a number with a fraction"),
        ("true", "must be one JSON object, not true or false"),
        ("null", "must be one JSON object, not null"),
        ("{}", "command is missing"),
        (#"{"room":"r"}"#, "command is missing: name one of open, join"),
        (
            #"{"command":"stop","room":"r"}"#,
            "command must be one of open, join, leave, extend, destroy, status"
        ),
        (#"{"command":"opn","room":"r"}"#, "did you mean \"open\""),
        (#"{"command":"JOIN","room":"r"}"#, "command must be one of"),
        (#"{"command":"","room":"r"}"#, "command must be one of"),
        (#"{"command":null,"room":"r"}"#, "command must be a string, not null"),
        (#"{"command":["open"],"room":"r"}"#, "command must be a string, not an array"),
        (#"{"command":1,"room":"r"}"#, "command must be a string, not an integer"),
        (#"{"command":"open"}"#, "room is missing"),
        (#"{"command":"open","room":""}"#, "room must have 1 to 128 bytes of UTF-8, not 0"),
        (#"{"command":"open","room":null}"#, "room must be a string, not null"),
        (#"{"command":"open","room":7}"#, "room must be a string, not an integer"),
        (#"{"command":"open","room":{"id":"r"}}"#, "room must be a string, not an object"),
        (#"{"command":"open","room":"a\nb"}"#, "room must not contain control characters"),
        (#"{"command":"open","room":"a\u007fb"}"#, "room must not contain control characters"),
        (#"{"command":"open","room":"a\u0085b"}"#, "room must not contain control characters"),
        (#"{"command":"open","room":"a\u009f"}"#, "room must not contain control characters"),
        (#"{"command":"open","room":"a\u001f"}"#, "room must not contain control characters"),
        (#"{"command":"open","room":"a\u0000"}"#, "the character NUL"),
        (#"{"command":"open","Room":"r"}"#, "\"Room\" is not a field of open: did you mean \"room\"?"),
        (#"{"command":"open","romo":"r"}"#, "did you mean \"room\"?"),
        (#"{"command":"open","room":"r","room":"r"}"#, "same key twice"),
        (#"{"command":"join","room":"r"}"#, "user is missing: join must say who acts"),
        (#"{"command":"leave","room":"r"}"#, "user is missing: leave must say who acts"),
        (#"{"command":"join","room":"r","user":""}"#, "user must have 1 to 128 bytes"),
        (#"{"command":"join","room":"r","user":null}"#, "user must be a string, not null"),
        (#"{"command":"join","room":"r","user":1}"#, "user must be a string, not an integer"),
        (#"{"command":"join","room":"r","user":"a\tb"}"#, "user must not contain control characters"),
        (#"{"command":"open","room":"r","user":""}"#, "user must have 1 to 128 bytes"),
        (#"{"command":"status","room":"r","user":[]}"#, "user must be a string, not an array"),
        (#"{"command":"extend","room":"r","user":null}"#, "user must be a string, not null"),
        (#"{"command":"destroy","room":"r","user":false}"#, "user must be a string, not true or false"),
        (#"{"command":"status","room":"r","id":""}"#, "id must have 1 to 128 bytes"),
        (#"{"command":"status","room":"r","id":null}"#, "id must be a string, not null"),
        (#"{"command":"status","room":"r","id":12}"#, "id must be a string, not an integer"),
        (#"{"command":"status","room":"r","ID":"x"}"#, "did you mean \"id\"?"),
        (#"{"command":"status","room":"r","": 1}"#, "\"\" is not a field of status"),
        (#"{"command":"status","room":"r","a\nb":1}"#, "\"a?b\" is not a field of status"),
        (
            #"{"command":"status","room":"r","correlation":1}"#,
            "leave it out (known: command, room, user, id)"
        ),
        (
            #"{"command":"leave","room":"r","user":"u","role":"viewer"}"#,
            "\"role\" is not a field of leave but of join"
        ),
        (#"{"command":"join","room":"r","user":"u","by":5}"#, "\"by\" is not a field of join but of extend"),
        (#"{"command":"destroy","room":"r","minutes":5}"#, "not a field of destroy but of extend"),
        (#"{"command":"status","room":"r","duration":5}"#, "not a field of status but of open"),
        (#"{"command":"extend","room":"r","policy":{}}"#, "not a field of extend but of open"),
        (#"{"command":"open","room":"r","minutes":5}"#, "not a field of open but of extend"),
        (#"{"command":"open","room":"r","role":"viewer"}"#, "not a field of open but of join"),
    ]

    /// Arguments of the wrong type or value; the body is an `open` of that policy, or another command.
    static let arguments: [(String, String)] = [
        (#"{"command":"extend","room":"r","minuets":5}"#, "did you mean \"minutes\"?"),
        (#"{"command":"extend","room":"r","by":5,"minutes":5}"#, "by and minutes are both given"),
        (#"{"command":"extend","room":"r","by":"x"}"#, "by must be a number of minutes or a string"),
        (#"{"command":"extend","room":"r","by":null}"#, "by must be a number of minutes"),
        (#"{"command":"extend","room":"r","by":0}"#, "by must be at least 1 ms"),
        (#"{"command":"extend","room":"r","by":-5}"#, "by must be at least 1 ms"),
        (#"{"command":"extend","room":"r","by":527041}"#, "by must be at most 366 days"),
        (#"{"command":"extend","room":"r","by":1e999}"#, "number that does not fit"),
        (#"{"command":"extend","room":"r","by":99999999999999999999}"#, "number that does not fit"),
        (#"{"command":"extend","room":"r","by":[5]}"#, "by must be a number of minutes"),
        (
            #"{"command":"extend","room":"r","minutes":"5m"}"#,
            "minutes must be a number of minutes, not a string"
        ),
        (#"{"command":"extend","room":"r","minutes":null}"#, "minutes must be a number of minutes, not null"),
        (#"{"command":"extend","room":"r","minutes":true}"#, "minutes must be a number of minutes, not true"),
        (#"{"command":"extend","room":"r","minutes":0}"#, "minutes must be at least 1 ms"),
        (#"{"command":"extend","room":"r","minutes":0.000001}"#, "minutes must be at least 1 ms"),
        (
            #"{"command":"join","room":"r","user":"u","role":"host"}"#,
            "role must be one of moderator, participant, viewer"
        ),
        (#"{"command":"join","room":"r","user":"u","role":"moderater"}"#, "did you mean \"moderator\""),
        (#"{"command":"join","room":"r","user":"u","role":null}"#, "role must be a string, not null"),
        (#"{"command":"join","room":"r","user":"u","role":1}"#, "role must be a string, not an integer"),
        (open(#""duration":"60""#), "duration must be a number of minutes or a string"),
        (open(#""duration":null"#), "duration must be a number of minutes"),
        (open(#""duration":"366d""#), "duration must be a number of minutes"),
        (open(#""duration":0"#), "duration must be at least 1 ms"),
        (open(#""durration":5"#), "did you mean \"duration\"?"),
        (open(#""moderators":null"#), "moderators must be an array of users, not null"),
        (open(#""moderators":"a""#), "moderators must be an array of users, not a string"),
        (open(#""moderators":{"a":1}"#), "moderators must be an array of users, not an object"),
        (open(#""moderators":["a",null]"#), "moderators[1] must be a string, not null"),
        (open(#""moderators":["a",""]"#), "moderators[1] must have 1 to 128 bytes"),
        (open(#""moderators":["a\u0007"]"#), "moderators[0] must not contain control characters"),
        (open(#""moderator":["a"]"#), "did you mean \"moderators\"?"),
        (open(#""policy":null"#), "policy must be an object, not null"),
        (open(#""policy":[]"#), "policy must be an object, not an array"),
        (open(#""policy":"default""#), "policy must be an object, not a string"),
        (
            policy(#""window":[5]"#),
            "\"policy.window\" is not a field of policy: did you mean \"policy.windows\"?"
        ),
        (policy(#""windows":null"#), "policy.windows must be an array of durations, not null"),
        (policy(#""windows":"5m""#), "policy.windows must be an array of durations, not a string"),
        (policy(#""windows":[10,"x"]"#), "policy.windows[1] must be a number of minutes"),
        (policy(#""windows":[10,0]"#), "policy.windows[1] must be at least 1 ms"),
        (policy(#""windows":[null]"#), "policy.windows[0] must be a number of minutes"),
        (policy(#""windows":[[10]]"#), "policy.windows[0] must be a number of minutes"),
        (policy(#""extension":null"#), "policy.extension must be an object, not null"),
        (policy(#""extension":10"#), "policy.extension must be an object, not an integer"),
        (policy(#""extension":{"mim":1}"#), "did you mean \"policy.extension.min\"?"),
        (policy(#""extension":{"step":1}"#), "\"policy.extension.step\" is not a field of policy.extension"),
        (policy(#""extension":{"min":null}"#), "policy.extension.min must be a number of minutes"),
        (policy(#""extension":{"max":-1}"#), "policy.extension.max must be at least 1 ms"),
        (policy(#""extension":{"default":"1x"}"#), "policy.extension.default must be a number of minutes"),
        (policy(#""extension":{"min":1,"min":1}"#), "same key twice"),
        (policy(#""extenders":"everyone""#), "policy.extenders must be one of anyone, moderators"),
        (policy(#""extenders":"moderator""#), "did you mean \"moderators\""),
        (policy(#""extenders":["anyone"]"#), "policy.extenders must be a string, not an array"),
        (
            policy(#""maxExtensions":-1"#),
            "policy.maxExtensions must be a whole number, 0 or more, and not negative"
        ),
        (
            policy(#""maxExtensions":2.0"#),
            "policy.maxExtensions must be a whole number, 0 or more, not a number with"
        ),
        (policy(#""maxExtensions":1e1"#), "policy.maxExtensions must be a whole number"),
        (
            policy(#""maxExtensions":"2""#),
            "policy.maxExtensions must be a whole number, 0 or more, not a string"
        ),
        (
            policy(#""maxExtensions":null"#),
            "policy.maxExtensions must be a whole number, 0 or more, not null"
        ),
        (policy(#""maxExtensions":9223372036854775808"#), "number that does not fit"),
        (policy(#""maxextensions":1"#), "did you mean \"policy.maxExtensions\"?"),
        (policy(#""maxTotal":null"#), "policy.maxTotal must be a number of minutes"),
        (policy(#""maxTotal":0"#), "policy.maxTotal must be at least 1 ms"),
        (policy(#""clock":"first_join""#), "did you mean \"first-join\""),
        (policy(#""clock":null"#), "policy.clock must be a string, not null"),
        (policy(#""reopen":"open""#), "policy.reopen must be one of command, join"),
        (policy(#""reopen":true"#), "policy.reopen must be a string, not true or false"),
        (policy(#""command":"open""#), "\"policy.command\" is not a field of policy"),
    ]

    static func open(_ argument: String) -> String { #"{"command":"open","room":"r",\#(argument)}"# }
    static func policy(_ field: String) -> String { open(#""policy":{\#(field)}"#) }
}
