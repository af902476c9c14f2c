//! Sidecars: small files beside the corpora that say how their kernels are launched, and with what.
//!
//! ```text
//! # Kernels of bench/kernels.cu.
//! of nvcc/kernels.* nvrtc/kernels.*              of these texts, below testdata/ptx; `*` is anything
//!
//! var table f32[64]                              contents of a variable of the module
//! kernel vector_add f32[1000] f32[1000] out[4000] u32=1000
//!     launch 4 x 256
//!     launch 2,3 x 32,8 shared 1024
//!     launch any
//! skip tensor_map*: no tensor maps on the software GPU
//! ```
//!
//! | argument | what it is |
//! |---|---|
//! | `f16[N] bf16[N] f32[N] f64[N]` | a buffer of N numbers from 0 to 1 |
//! | `u8[N] u16[N] u32[N] u64[N]`, `u32[N]<M` | of N integers; below M |
//! | `rising[N]<M` | of N u32 from 0 on that never fall, up to M: the rows of a sparse matrix |
//! | `out[N]`, `zero[N]` | of N bytes of ones, of zeros |
//! | `u8=V u16=V u32=V u64=V f32=V f64=V` | a scalar; integers may be negative |
//! | `bytes=HEX` | a struct by value |
//! | `{ … }` | a struct by value of these members, each aligned to its size |
//!
//! `launch any` is for kernels whose accesses stay inside of their buffers in whatever shape: they run in blocks of 1, 31,
//! 33, 48 and 1023 threads of one to three axes, in grids of three.

use crate::random::Random;

/// A sidecar.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sidecar {
    /// Globs of the texts that it speaks of.
    pub of: Vec<String>,
    /// Contents of variables, by name; a text that has no such variable does without.
    pub variables: Vec<(String, Content)>,
    /// Its kernels.
    pub kernels: Vec<Kernel>,
    /// Kernels that are not launched, by glob, with the reason.
    pub skipped: Vec<(String, String)>,
}

/// How a kernel is launched.
#[derive(Debug, Clone, PartialEq)]
pub struct Kernel {
    /// A glob of its name.
    pub name: String,
    /// Its arguments, in order.
    pub args: Vec<Argument>,
    /// Its launches.
    pub launches: Vec<Shape>,
}

/// An argument.
#[derive(Debug, Clone, PartialEq)]
pub enum Argument {
    /// A pointer to a buffer.
    Buffer(Content),
    /// Bytes by value.
    Value(Vec<u8>),
    /// Members one after the other, aligned.
    Struct(Vec<Argument>),
}

/// What is in a buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    kind: Elements,
    count: usize,
    below: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Elements {
    F16,
    Bf16,
    F32,
    F64,
    Integer(usize),
    Rising,
    Ones,
    Zeros,
}

/// The shape of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// May all blocks wait for each other?
    pub cooperative: bool,
}

/// The shapes of `launch any`.
const ANY: [([u32; 3], [u32; 3]); 5] = [
    ([5, 3, 2], [1, 1, 1]),
    ([2, 1, 3], [31, 1, 1]),
    ([1, 2, 2], [11, 1, 3]),
    ([2, 2, 1], [4, 6, 2]),
    ([1, 1, 2], [341, 3, 1]),
];

/// Buffers of more are refused: a slip of the fingers.
const MOST: usize = 1 << 24;

impl Sidecar {
    /// Reads a sidecar.
    ///
    /// # Errors
    /// The line, and what is wrong with it.
    pub fn parse(text: &str) -> Result<Sidecar, String> {
        let mut sidecar = Sidecar::default();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split_once('#').map_or(line, |(before, _)| before).trim();
            sidecar.line(line).map_err(|what| format!("line {number}: {what}"))?;
        }
        if sidecar.of.is_empty() {
            return Err("no `of` line".to_owned());
        }
        match sidecar.kernels.iter().find(|kernel| kernel.launches.is_empty()) {
            Some(kernel) => Err(format!("kernel `{}` has no launch", kernel.name)),
            None => Ok(sidecar),
        }
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        match word {
            "" => {}
            "of" => self.of.extend(rest.split_whitespace().map(str::to_owned)),
            "var" => {
                let (name, content) = rest.split_once(' ').ok_or("`var NAME CONTENT` is meant")?;
                self.variables.push((name.to_owned(), Content::parse(content.trim())?));
            }
            "skip" => {
                let (name, why) = rest.split_once(": ").ok_or("`skip KERNEL: reason` is meant")?;
                self.skipped.push((name.to_owned(), why.to_owned()));
            }
            "kernel" => {
                let mut words = rest.split_whitespace();
                let name = words.next().ok_or("a kernel without a name")?.to_owned();
                let args = arguments(&mut words, false)?;
                self.kernels.push(Kernel { name, args, launches: Vec::new() });
            }
            "launch" => {
                let kernel = self.kernels.last_mut().ok_or("a launch before any kernel")?;
                kernel.launches.extend(shapes(rest)?);
            }
            other => return Err(format!("`{other}` is no word that a line begins with")),
        }
        Ok(())
    }

    /// What it says of a kernel: how it is launched, or nothing where it is skipped; `None` if it does not name it.
    pub fn find(&self, kernel: &str) -> Option<Option<&Kernel>> {
        if self.skipped.iter().any(|(glob, _)| nt_ir::glob_matches(glob, kernel)) {
            return Some(None);
        }
        self.kernels.iter().find(|known| nt_ir::glob_matches(&known.name, kernel)).map(Some)
    }
}

fn arguments<'t>(words: &mut impl Iterator<Item = &'t str>, inside: bool) -> Result<Vec<Argument>, String> {
    let mut args = Vec::new();
    while let Some(word) = words.next() {
        args.push(match word {
            "{" if !inside => Argument::Struct(arguments(words, true)?),
            "}" if inside => return Ok(args),
            _ => match word.split_once('=') {
                Some((ty, value)) => Argument::Value(scalar(ty, value)?),
                None => Argument::Buffer(Content::parse(word)?),
            },
        });
    }
    if inside { Err("`{` without `}`".to_owned()) } else { Ok(args) }
}

fn scalar(ty: &str, value: &str) -> Result<Vec<u8>, String> {
    let wrong = || format!("`{ty}={value}` is no scalar");
    let integer = |size: usize| -> Result<Vec<u8>, String> {
        let value: i128 = value.parse().map_err(|_| wrong())?;
        Ok(value.to_le_bytes()[..size].to_vec())
    };
    match ty {
        "u8" => integer(1),
        "u16" => integer(2),
        "u32" => integer(4),
        "u64" => integer(8),
        "f32" => Ok(value.parse::<f32>().map_err(|_| wrong())?.to_le_bytes().to_vec()),
        "f64" => Ok(value.parse::<f64>().map_err(|_| wrong())?.to_le_bytes().to_vec()),
        "bytes" if value.len().is_multiple_of(2) && value.is_ascii() => (0..value.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&value[at..at + 2], 16).map_err(|_| wrong()))
            .collect(),
        _ => Err(wrong()),
    }
}

impl Content {
    fn parse(word: &str) -> Result<Content, String> {
        let wrong = || format!("`{word}` is no argument");
        let (kind, rest) = word.split_once('[').ok_or_else(wrong)?;
        let (count, below) = rest.split_once(']').ok_or_else(wrong)?;
        let count = count.parse().ok().filter(|&count| count <= MOST).ok_or_else(wrong)?;
        let below = match below.strip_prefix('<') {
            Some(below) => Some(below.parse().map_err(|_| wrong())?),
            None if below.is_empty() => None,
            None => return Err(wrong()),
        };
        let kind = match kind {
            "f16" => Elements::F16,
            "bf16" => Elements::Bf16,
            "f32" => Elements::F32,
            "f64" => Elements::F64,
            "u8" => Elements::Integer(1),
            "u16" => Elements::Integer(2),
            "u32" => Elements::Integer(4),
            "u64" => Elements::Integer(8),
            "rising" => Elements::Rising,
            "out" => Elements::Ones,
            "zero" => Elements::Zeros,
            _ => return Err(wrong()),
        };
        Ok(Content { kind, count, below })
    }

    /// Its bytes, by chance.
    pub fn bytes(&self, random: &mut Random) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut last = 0;
        for index in 0..self.count {
            match self.kind {
                // Exponents of 12 to 14: from 1/8 to 1.
                Elements::F16 => bytes.extend((0x3000 + random.below(0x0c00) as u16).to_le_bytes()),
                Elements::Bf16 => bytes.extend(&(random.unit() as f32).to_le_bytes()[2..]),
                Elements::F32 => bytes.extend((random.unit() as f32).to_le_bytes()),
                Elements::F64 => bytes.extend(random.unit().to_le_bytes()),
                Elements::Integer(size) => {
                    let value = match self.below {
                        Some(below) => random.below(below),
                        None => random.bits(),
                    };
                    bytes.extend(&value.to_le_bytes()[..size]);
                }
                Elements::Rising => {
                    let end = self.below.unwrap_or(0);
                    // Steps that come to the end in the mean, the first of them none.
                    let most = 2 * end / (self.count as u64).max(1) + 1;
                    last = if index == 0 { 0 } else { (last + random.below(most)).min(end) };
                    bytes.extend((last as u32).to_le_bytes());
                }
                Elements::Ones => bytes.push(0xff),
                Elements::Zeros => bytes.push(0),
            }
        }
        bytes
    }
}

/// `4 x 256`, `2,3 x 32,8 shared 1024 cooperative`, `any`
fn shapes(text: &str) -> Result<Vec<Shape>, String> {
    if text == "any" {
        let shape = |(grid, block)| Shape { grid, block, shared: 0, cooperative: false };
        return Ok(ANY.into_iter().map(shape).collect());
    }
    let wrong = || format!("`{text}` is no launch");
    let axes = |word: Option<&str>| -> Result<[u32; 3], String> {
        let mut axes = [1; 3];
        let word = word.ok_or_else(wrong)?;
        if word.split(',').count() > 3 {
            return Err(wrong());
        }
        for (axis, number) in axes.iter_mut().zip(word.split(',')) {
            *axis = number.parse().map_err(|_| wrong())?;
        }
        Ok(axes)
    };
    let mut words = text.split_whitespace();
    let grid = axes(words.next())?;
    if words.next() != Some("x") {
        return Err(wrong());
    }
    let mut shape = Shape { grid, block: axes(words.next())?, shared: 0, cooperative: false };
    while let Some(word) = words.next() {
        match word {
            "shared" => shape.shared = words.next().and_then(|n| n.parse().ok()).ok_or_else(wrong)?,
            "cooperative" => shape.cooperative = true,
            _ => return Err(wrong()),
        }
    }
    Ok(vec![shape])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sidecar() {
        let text = "# words\nof a.* b/c.ptx\nvar t f32[2]\nkernel k* u32[3]<5 u32=-1 { zero[2] u8=7 } bytes=0aff\n\
                    launch 2,3 x 32 shared 16\nlaunch any\nskip q: because";
        let sidecar = Sidecar::parse(text).unwrap();
        assert_eq!(sidecar.of, ["a.*", "b/c.ptx"]);
        let kernel = sidecar.find("k1").unwrap().unwrap();
        assert_eq!(kernel.launches.len(), 6);
        assert_eq!(kernel.launches[0].grid, [2, 3, 1]);
        assert_eq!((kernel.launches[0].block, kernel.launches[0].shared), ([32, 1, 1], 16));
        assert_eq!(kernel.args[1], Argument::Value(vec![0xff; 4]));
        assert_eq!(kernel.args[3], Argument::Value(vec![10, 255]));
        assert_eq!(sidecar.find("q"), Some(None));
        assert_eq!(sidecar.find("z"), None);
    }

    #[test]
    fn blocks_of_any_shape() {
        let threads: Vec<u32> = ANY.iter().map(|(_, block)| block.iter().product()).collect();
        assert_eq!(threads, [1, 31, 33, 48, 1023]);
    }

    #[test]
    fn wrong_lines() {
        for (text, what) in [
            ("", "no `of`"),
            ("of a\nkernel k", "no launch"),
            ("of a\nkernel k\nlaunch 1 y 2", "line 3: `1 y 2` is no launch"),
            ("of a\nkernel k f33[2]", "`f33[2]` is no argument"),
            ("of a\nkernel k u32=x", "`u32=x` is no scalar"),
            ("of a\nkernel k { u8=1", "without `}`"),
            ("of a\nlaunch 1 x 1", "before any kernel"),
            ("of a\nkernel k u32[99999999999]", "is no argument"),
            ("woof", "`woof`"),
        ] {
            let found = Sidecar::parse(text).unwrap_err();
            assert!(found.contains(what), "{text}: {found}");
        }
    }

    #[test]
    fn rows_rise() {
        let content = Content::parse("rising[100]<500").unwrap();
        let bytes = content.bytes(&mut Random::new(3));
        let rows: Vec<u32> =
            bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        assert!(rows.is_sorted() && rows[0] == 0 && rows[99] <= 500 && rows[99] > 250, "{rows:?}");
    }
}
