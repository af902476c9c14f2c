//! V9: the special registers that may be read.
//!
//! ```text
//! mov.u32 %nt_x, %tid.x;      mov.u64 %nt_t, %clock64;
//! ```
//!
//! Which of them a target has is the assembler's to say, aloud. A kernel may give their names another meaning, in
//! silence: `.reg .b32 %clock;` ([`crate::place::Shadows`]).

/// Special registers that may be read: name, fields if it has any, bits. PTX ISA 9.0, chapter 10.
///
/// Not here: `%pm0` and its kin, `%envreg`, what nothing needs.
pub(crate) const SPECIAL: [(&str, &str, u32); 26] = [
    ("%tid", "xyz", 32),
    ("%ntid", "xyz", 32),
    ("%ctaid", "xyz", 32),
    ("%nctaid", "xyz", 32),
    ("%clusterid", "xyz", 32),
    ("%nclusterid", "xyz", 32),
    ("%cluster_ctaid", "xyz", 32),
    ("%cluster_nctaid", "xyz", 32),
    ("%cluster_ctarank", "", 32),
    ("%laneid", "", 32),
    ("%warpid", "", 32),
    ("%nwarpid", "", 32),
    ("%smid", "", 32),
    ("%nsmid", "", 32),
    ("%lanemask_eq", "", 32),
    ("%lanemask_lt", "", 32),
    ("%lanemask_le", "", 32),
    ("%lanemask_gt", "", 32),
    ("%lanemask_ge", "", 32),
    ("%clock", "", 32),
    ("%clock_hi", "", 32),
    ("%globaltimer_lo", "", 32),
    ("%globaltimer_hi", "", 32),
    ("%clock64", "", 64),
    ("%globaltimer", "", 64),
    ("%gridid", "", 64),
];

/// The bits of a special register, by its name with the field.
pub(crate) fn special(name: &str) -> Option<u32> {
    let (base, field) = name.split_once('.').unwrap_or((name, ""));
    let &(_, fields, bits) = SPECIAL.iter().find(|(known, ..)| *known == base)?;
    let right =
        if fields.is_empty() { !name.contains('.') } else { field.len() == 1 && fields.contains(field) };
    right.then_some(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_registers() {
        for (name, bits) in
            [("%tid.x", 32), ("%nctaid.z", 32), ("%clock", 32), ("%clock64", 64), ("%gridid", 64)]
        {
            assert_eq!(special(name), Some(bits), "{name}");
        }
        for name in
            ["%tid", "%tid.", "%tid.w", "%tid.xy", "%clock.x", "%clock.", "%pm0", "tid.x", "%envreg0", ""]
        {
            assert_eq!(special(name), None, "{name}");
        }
    }
}
