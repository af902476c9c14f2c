//! Colours of counts: light to dark on white, in steps that colour-blind eyes tell apart as well.
//!
//! The scale is viridis (Smith and van der Walt, in the public domain) from its yellow to its violet: lightness falls
//! all the way, so the order is seen in grey too. A count of 0 is white.

/// A colour: red, green, blue.
pub(super) type Rgb = [u8; 3];

/// Viridis at eighths, the end first.
const SCALE: [Rgb; 9] = [
    [0xfd, 0xe7, 0x25],
    [0xad, 0xdc, 0x30],
    [0x5e, 0xc9, 0x62],
    [0x28, 0xae, 0x80],
    [0x21, 0x91, 0x8c],
    [0x2c, 0x72, 0x8e],
    [0x3b, 0x52, 0x8b],
    [0x47, 0x2d, 0x7b],
    [0x44, 0x01, 0x54],
];

/// As many steps the scale has in a picture.
pub(super) const STEPS: u32 = 32;

/// The step of a count, logarithmic from 1 to the most; none of 0.
pub(super) fn step(count: u64, most: u64) -> Option<u32> {
    if count == 0 {
        return None;
    }
    if most <= 1 {
        return Some(STEPS - 1);
    }
    let share = (count as f64).ln() / (most as f64).ln();
    Some(((share * f64::from(STEPS - 1)).round() as u32).min(STEPS - 1))
}

/// The colour of a step.
pub(super) fn colour(step: u32) -> Rgb {
    let place = f64::from(step.min(STEPS - 1)) / f64::from(STEPS - 1) * (SCALE.len() - 1) as f64;
    let below = (place as usize).min(SCALE.len() - 2);
    let (share, mut mixed) = (place - below as f64, [0; 3]);
    for (channel, mixed) in mixed.iter_mut().enumerate() {
        let (a, b) = (f64::from(SCALE[below][channel]), f64::from(SCALE[below + 1][channel]));
        *mixed = (a + (b - a) * share).round() as u8;
    }
    mixed
}

/// As CSS has it.
pub(super) fn css([red, green, blue]: Rgb) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_logarithmic() {
        let check = |count, most, expected| assert_eq!(step(count, most), expected, "{count} of {most}");
        check(0, 100, None);
        check(1, 1, Some(31));
        check(1, 1024, Some(0));
        check(32, 1024, Some(16));
        check(1024, 1024, Some(31));
        check(u64::MAX, u64::MAX, Some(31));
    }

    #[test]
    fn the_scale_grows_darker_all_the_way() {
        assert_eq!((colour(0), colour(31)), ([0xfd, 0xe7, 0x25], [0x44, 0x01, 0x54]));
        let light = |step| {
            let [red, green, blue] = colour(step).map(f64::from);
            0.2126 * red + 0.7152 * green + 0.0722 * blue
        };
        assert!((1..STEPS).all(|step| light(step) < light(step - 1)));
    }
}
