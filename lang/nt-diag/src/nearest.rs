//! "Did you mean": the candidate that is closest to what was typed, if it is close at all.

/// The candidate nearest to `name` by edit distance (transpositions count once), if it is near enough to be a slip
/// of the fingers: at most a third of the name's length away, and at least one. Ties go to the first candidate.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (strsim::osa_distance(name, candidate), candidate))
        .filter(|&(distance, candidate)| distance <= limit && candidate != name)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_is_found_and_a_stranger_is_not() {
        assert_eq!(nearest("heats", ["map", "heat", "cold"]), Some("heat"));
        assert_eq!(nearest("clcok", ["clock", "block"]), Some("clock"));
        assert_eq!(nearest("x", ["clock"]), None);
        assert_eq!(nearest("frobnicate", ["clock", "time"]), None);
    }
}
