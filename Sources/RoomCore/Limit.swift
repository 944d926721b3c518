/// What `maxExtensions` and `maxTotal` leave for one more extension.
extension Policy {
    /// The longest grant that the limits allow, nil where they forbid one: `maxExtensions` is used up, or
    /// less than the shortest extension fits under `maxTotal`.
    ///
    /// - Parameter total: start to planned end; of a waiting session its planned duration.
    package func longestGrant(extensions: Int64, total: TimeSpan) -> TimeSpan? {
        if let maxExtensions, extensions >= maxExtensions { return nil }
        guard let maxTotal else { return `extension`.max }
        let left = maxTotal - total
        return left < `extension`.min ? nil : min(left, `extension`.max)
    }
}
