//! Names of files that are written: unique, the same for the same input, and no longer than a file system takes.
//!
//! ```text
//! libk.so.03.sm_90a.ptx     the input's name, the number that `-l` shows, the architecture, the kind
//! ```
//!
//! Kernels' names are not part of it: one image has many, and they may have many KiB. `-l` lists them.

use nt_cli::Input;
use nt_object::{Entry, Kind};
use std::collections::BTreeSet;

/// A file name may have 255 bytes; number, architecture and ending need some 40 of them.
const LONGEST: usize = 160;

/// The beginnings that were given out, so that two inputs of one name do not overwrite each other's images.
#[derive(Debug, Default)]
pub(crate) struct Names {
    used: BTreeSet<String>,
}

impl Names {
    /// How the names of an input's images begin.
    pub(crate) fn stem(&mut self, input: &Input) -> String {
        let name = match input {
            Input::Stdin => "stdin".to_owned(),
            Input::Path(path) => {
                path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
            }
        };
        let name = shortened(&name);
        let mut stem = name.clone();
        let mut number = 2;
        while !self.used.insert(stem.clone()) {
            stem = format!("{name}-{number}");
            number += 1;
        }
        stem
    }
}

/// A long name's beginning and a hash of all of it.
fn shortened(name: &str) -> String {
    if name.len() <= LONGEST {
        return name.to_owned();
    }
    let hash = blake3::hash(name.as_bytes()).to_hex();
    let mut end = LONGEST - 17;
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}~{}", &name[..end], &hash[..16])
}

/// The name of one image, of an input with `count` of them.
pub(crate) fn image(stem: &str, entry: &Entry<'_>, count: usize) -> String {
    let width = count.to_string().len();
    let arch = entry.arch.map_or_else(String::new, |arch| format!(".{arch}"));
    let ending = match entry.kind {
        Kind::Ptx => "ptx".to_owned(),
        Kind::Elf => "cubin".to_owned(),
        Kind::LtoIr => "ltoir".to_owned(),
        Kind::TileIr => "tileir".to_owned(),
        Kind::Other(number) => format!("kind{number}"),
    };
    format!("{stem}.{:0width$}{arch}.{ending}", entry.index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stems(inputs: &[&str]) -> Vec<String> {
        let mut names = Names::default();
        inputs.iter().map(|input| names.stem(&input.parse().unwrap())).collect()
    }

    #[test]
    fn inputs_of_one_name_are_told_apart() {
        assert_eq!(
            stems(&["a/x.so", "b/x.so", "-", "x.so-2", "c/x.so"]),
            ["x.so", "x.so-2", "stdin", "x.so-2-2", "x.so-3"]
        );
    }

    #[test]
    fn long_names_are_cut_without_a_clash() {
        let long = "é".repeat(120);
        let found = stems(&[&format!("{long}a"), &format!("{long}b")]);
        assert!(found.iter().all(|stem| stem.len() <= LONGEST), "{found:?}");
        assert_ne!(found[0], found[1]);
        assert_eq!(found, stems(&[&format!("{long}a"), &format!("{long}b")]));
    }

    #[test]
    fn numbers_are_padded_to_sort() {
        let container = nt_object::open(b".version 8.0\n.target sm_90a").unwrap();
        assert_eq!(image("x", &container.entries[0], 120), "x.001.sm_90a.ptx");
        assert_eq!(image("x", &container.entries[0], 1), "x.1.sm_90a.ptx");
    }
}
