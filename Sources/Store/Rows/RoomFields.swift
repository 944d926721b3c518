import RoomCore

/// A room's columns as plain values, both ways; the definitions stand beside them. What does not fit the rules is refused
/// in both directions, so that nothing unreadable is written and nothing senseless reaches the rules.
///
/// Instants are milliseconds since 1970, UTC. `phase`: 0 waiting, 1 running, 2 ended; all columns of the session are nil
/// before the first one and after pruning. `cause`: 0 elapsed, 1 destroyed. `extenderKind`: 0 user, 1 operator.
struct RoomFields {
    var sequence: Int64
    var session: Int64
    var isOpen: Int64
    var connected: Int64?
    var changedAt: Int64?
    var startedAt: Int64?
    var endsAt: Int64?
    var extensions: Int64?
    var announced: Int64?
    var extenderKind: Int64?
    var extendedBy: String?
    var endedAt: Int64?
    var cause: Int64?
    var phase: Int64?
    /// Derived, and never read back: the next due instant while the session runs.
    var dueAt: Int64?

    // MARK: Writing

    init(_ room: Room) {
        sequence = room.sequence
        session = room.sessionNumber
        isOpen = room.isOpen ? 1 : 0
        dueAt = room.dueAt?.milliseconds
        phase = Self.phase(of: room.session)
        guard let session = room.session else { return }
        connected = session.connected
        changedAt = session.changedAt.milliseconds
        switch session.phase {
        case .waiting:
            break
        case .running(let run):
            startedAt = run.startedAt.milliseconds
            endsAt = run.endsAt.milliseconds
            extensions = run.extensions
            announced = Int64(run.announced)
            switch run.extendedBy {
            case nil: break
            case .user(let user):
                extenderKind = 0
                extendedBy = user.text
            case .operator(let name):
                extenderKind = 1
                extendedBy = name
            }
        case .ended(let ending):
            startedAt = ending.startedAt?.milliseconds
            endsAt = ending.endsAt?.milliseconds
            extensions = ending.extensions
            endedAt = ending.endedAt.milliseconds
            cause = ending.cause == .elapsed ? 0 : 1
        }
    }

    static func phase(of session: Session?) -> Int64? {
        switch session?.phase {
        case nil: nil
        case .waiting: 0
        case .running: 1
        case .ended: 2
        }
    }

    /// Since when the room waits to be pruned; nil while it is in use or open, and once it was pruned.
    static func idleSince(_ room: Room) -> Int64? {
        guard !room.isOpen, case .ended(let ending) = room.session?.phase else { return nil }
        return ending.endedAt.milliseconds
    }

    /// What a write leaves behind for pruning: the session below whose number participants' rows have no live session any more;
    /// nil where the write ends none.
    ///
    /// Sessions that this write finds over, also those that began and ended within the batch, leave their participants behind.
    static func leftoverBound(of room: Room, overSession: Int64?, wasLive: Bool) -> Int64? {
        let lastOver = room.session?.isLive == true ? room.sessionNumber - 1 : room.sessionNumber
        let firstWithRows = overSession.map { wasLive ? $0 : $0 + 1 } ?? 1
        return lastOver >= firstWithRows ? lastOver + 1 : nil
    }

    // MARK: Reading

    init(
        sequence: Int64, session: Int64, isOpen: Int64, connected: Int64?, changedAt: Int64?,
        startedAt: Int64?, endsAt: Int64?, extensions: Int64?, announced: Int64?, extenderKind: Int64?,
        extendedBy: String?, endedAt: Int64?, cause: Int64?, phase: Int64?
    ) {
        self.sequence = sequence
        self.session = session
        self.isOpen = isOpen
        self.connected = connected
        self.changedAt = changedAt
        self.startedAt = startedAt
        self.endsAt = endsAt
        self.extensions = extensions
        self.announced = announced
        self.extenderKind = extenderKind
        self.extendedBy = extendedBy
        self.endedAt = endedAt
        self.cause = cause
        self.phase = phase
    }

    func room(
        _ id: RoomID, definition: Definition?, sessionDefinition: Definition?
    ) throws(StoreError) -> Room {
        var room = Room(
            id: id, definition: definition, sequence: sequence, sessionNumber: session, isOpen: isOpen == 1)
        if let phase {
            guard let sessionDefinition else { throw .corruptRoom(id, "its session has no definition") }
            room.session = Session(
                number: session, definition: sessionDefinition, phase: try self.phase(phase, of: id),
                connected: connected ?? 0, changedAt: try instant(changedAt, of: id))
        }
        if let defect = room.defect { throw .corruptRoom(id, defect) }
        return room
    }

    private func phase(_ number: Int64, of id: RoomID) throws(StoreError) -> Session.Phase {
        switch number {
        case 0:
            return .waiting
        case 1:
            return .running(
                Run(
                    startedAt: try instant(startedAt, of: id), endsAt: try instant(endsAt, of: id),
                    extensions: extensions ?? 0, announced: Int(announced ?? 0),
                    extendedBy: try extender(of: id)))
        case 2:
            return .ended(
                Ending(
                    startedAt: startedAt == nil ? nil : try instant(startedAt, of: id),
                    endsAt: endsAt == nil ? nil : try instant(endsAt, of: id),
                    endedAt: try instant(endedAt, of: id), cause: (cause ?? 0) == 0 ? .elapsed : .destroyed,
                    extensions: extensions ?? 0))
        default:
            throw .corruptRoom(id, "its phase is \(number)")
        }
    }

    private func extender(of id: RoomID) throws(StoreError) -> Extender? {
        guard let extenderKind else { return nil }
        guard let extendedBy else { throw .corruptRoom(id, "its last extender has no name") }
        return extenderKind == 0 ? .user(UserID(extendedBy)) : .operator(extendedBy)
    }

    /// `Instant` would clamp what lies outside its bounds and so change a room silently.
    private func instant(_ milliseconds: Int64?, of id: RoomID) throws(StoreError) -> Instant {
        guard let milliseconds else { throw .corruptRoom(id, "an instant of its session is missing") }
        let instant = Instant(milliseconds: milliseconds)
        guard instant.milliseconds == milliseconds else {
            throw .corruptRoom(id, "an instant of its session is \(milliseconds)")
        }
        return instant
    }
}

extension Room {
    /// What the rules could not work with; nil for a sound room.
    var defect: String? {
        if sequence < 0 { return "its sequence is \(sequence)" }
        if sessionNumber < 0 { return "its session number is \(sessionNumber)" }
        guard let session else { return nil }
        if session.number != sessionNumber {
            return "its session \(session.number) is not the latest, \(sessionNumber)"
        }
        if session.connected < 0 { return "\(session.connected) users are connected" }
        switch session.phase {
        case .waiting:
            return nil
        case .running(let run):
            if run.endsAt < run.startedAt { return "its session ends before it starts" }
            if run.extensions < 0 { return "its session was extended \(run.extensions) times" }
            let windows = session.definition.policy.windows.count
            return (0...windows).contains(run.announced)
                ? nil : "window \(run.announced) of \(windows) is announced"
        case .ended(let ending):
            if ending.extensions < 0 { return "its session was extended \(ending.extensions) times" }
            return session.connected == 0
                ? nil : "\(session.connected) users are connected to an ended session"
        }
    }
}
