//! The command line.

use clap::Parser;
use nt_cli::choose::Choice;
use nt_cli::{Common, Input};
use nt_object::Arch;
use std::path::PathBuf;
use std::str::FromStr;

/// Pull PTX and cubins out of programs and libraries
///
/// Reads ELF, PE and Mach-O files, archives (.a), fatbins, cubins and PTX, stripped ones too. Without `-l`, what is
/// chosen is written: into the folder `-o`, or to standard output where exactly one image is chosen.
#[derive(Debug, Parser)]
#[command(name = "nt-extract", version, after_help = AFTER)]
pub(crate) struct Args {
    /// Programs, libraries, or whatever holds device code; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<Input>,

    /// List images instead, a line each: file, index, kind, arch, ptx (its version), bytes, compression, section, kernels
    #[arg(short, long)]
    pub(crate) list: bool,

    /// Only PTX, and cubins if --elf is given too
    #[arg(long)]
    pub(crate) ptx: bool,

    /// Only cubins, and PTX if --ptx is given too
    #[arg(long)]
    pub(crate) elf: bool,

    /// Only images with a kernel whose mangled or demangled name has a match for REGEX, or is NAME; may be given again
    #[arg(short, long = "kernel", value_name = "REGEX|=NAME")]
    pub(crate) kernels: Vec<Choice>,

    /// Only images for this architecture (sm_80, 90a); may be given again
    #[arg(long = "arch", value_name = "ARCH")]
    pub(crate) archs: Vec<Arch>,

    /// Of each fatbin only the PTX that is best for a device (8.6, sm_86), and say why
    #[arg(long, value_name = "CC", conflicts_with_all = ["archs", "elf"])]
    pub(crate) device: Option<Device>,

    /// Only the images of these numbers, as `-l` shows them; may be given again
    #[arg(short, long = "index", value_name = "N")]
    pub(crate) indexes: Vec<u32>,

    /// A folder, made if it is not there; or `-` where exactly one image is chosen
    #[arg(short, long, value_name = "DIR|-")]
    pub(crate) output: Option<PathBuf>,

    /// Also search the whole file for PTX kept as a string and for cubins outside of fatbins
    #[arg(long)]
    pub(crate) scan: bool,

    /// How many bytes one image may decompress to
    #[arg(long, value_name = "BYTES", default_value_t = nt_object::LIMIT)]
    pub(crate) limit: usize,

    #[command(flatten)]
    pub(crate) common: Common,
}

const AFTER: &str = "\
Examples:
  nt-extract -l app                                 what is in it
  nt-extract --ptx app -o ptx/                      all of its PTX, a file each
  nt-extract --device 9.0 -k =gemm app > gemm.ptx   the one that a driver would compile for that device
  nt-extract --ptx -i 3 app | nt-inject -p block_sched - > probed.ptx
  nt-extract -l lib*.so | awk -F'\\t' '$3 == \"ptx\" { print $4 }' | sort | uniq -c

Exit status:
  0 done    1 not a container, or several images where one is needed    2 usage, or a file failed
  4 nothing there: no device code, no PTX, no kernel matched    5 damaged in part: what is sound is written";

/// `--device`: a compute capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Device(pub(crate) u32);

impl FromStr for Device {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let error = || format!("`{word}` is no compute capability: `8.6`, `86` and `sm_86` are");
        if let Some((major, minor)) = word.split_once('.') {
            let (major, minor): (u32, u32) =
                (major.parse().map_err(|_| error())?, minor.parse().map_err(|_| error())?);
            return if minor < 10 && major < 1000 { Ok(Device(major * 10 + minor)) } else { Err(error()) };
        }
        // A device has no suffix; whoever types `sm_90a` means the device that runs such code.
        word.parse().map(|arch: Arch| Device(arch.sm)).map_err(|_| error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_agree_with_each_other() {
        <Args as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn devices_by_any_of_their_names() {
        let check =
            |word: &str, expected: Option<u32>| assert_eq!(word.parse().ok(), expected.map(Device), "{word}");
        check("8.6", Some(86));
        check("12.0", Some(120));
        check("sm_90a", Some(90));
        check("100", Some(100));
        for word in ["", ".", "8.", "8.66", "x", "-1", "99999999999.0"] {
            check(word, None);
        }
    }
}
