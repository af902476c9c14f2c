//! What a ptxas says of a text: whether it takes it, what it prints, and what it makes of it.

use nt_ptx::Edits;
use nt_ptx::syntax::{Kind, Module};
use nt_ptx::version::{Arch, Pair, of_release};
use object::{Object as _, ObjectSection as _};
use std::io::Result;
use std::path::PathBuf;
use std::process::Command;

/// An edit that changes nothing for an assembler: an empty comment before every statement and item, every opcode
/// replaced by itself. Lines stay where they are.
pub(crate) fn edited_without_change(module: &Module<'_>) -> String {
    let mut edits = Edits::new();
    for item in &module.items {
        edits.insert(item.span.start, "/**/");
    }
    for statement in &module.statements {
        edits.insert(statement.span.start, "/**/");
        if let Kind::Instruction(instruction) = statement.kind {
            edits.replace(instruction.opcode, module.at(instruction.opcode));
        }
    }
    let edited = edits.apply(module.text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        edited.len(),
        module.text.len() + "/**/".len() * (module.items.len() + module.statements.len())
    );
    edited
}

/// An assembler of one version.
pub(crate) struct Ptxas {
    file: PathBuf,
    /// `13.0.88`
    pub(crate) version: String,
    /// The newest PTX that it takes; `None` if that is not known.
    newest: Option<Pair>,
    folder: tempfile::TempDir,
}

/// What it says of a text. Two answers are equal if nobody can tell the texts apart by them.
#[derive(PartialEq, Eq)]
struct Answer {
    is_accepted: bool,
    printed: String,
    /// Names and bytes of the object's sections; without the copies of the text that objects with debug data hold.
    sections: Vec<(String, Vec<u8>)>,
}

/// What it says of two texts.
pub(crate) struct Comparison {
    /// Is the first one taken?
    pub(crate) is_accepted: bool,
    /// Is all the same of both?
    pub(crate) is_same: bool,
    /// What is printed of the second one.
    pub(crate) printed: String,
}

/// How often two texts are assembled before they count as different: ptxas makes of some texts (tensor cores of sm_100a
/// were seen) one of two objects, by chance, with the same text each time.
const ATTEMPTS: usize = 12;

impl Ptxas {
    pub(crate) fn new(file: PathBuf) -> Result<Ptxas> {
        let out = Command::new(&file).arg("--version").output()?;
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let version = text.split(" V").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap_or("?");
        let mut numbers = version.split('.').map_while(|number| number.parse().ok());
        let newest = numbers.next().zip(numbers.next()).and_then(|(major, minor)| of_release(major, minor));
        Ok(Ptxas { file, version: version.to_owned(), newest, folder: tempfile::tempdir()? })
    }

    /// Whether it can tell a text from what was made of it by edits. A version too new for this assembler is lowered in
    /// both first: little of what compilers write needs the version that they claim.
    pub(crate) fn compare(&self, module: &Module<'_>, edited: &str) -> Result<Comparison> {
        let (text, edited) = (self.lowered(module), self.lowered(&nt_ptx::parse(edited).0));
        let mut before = vec![self.answer(module, &text)?];
        let mut after = vec![self.answer(module, &edited)?];
        while !after.iter().any(|answer| before.contains(answer)) && after.len() < ATTEMPTS {
            before.push(self.answer(module, &text)?);
            after.push(self.answer(module, &edited)?);
        }
        let is_same = after.iter().any(|answer| before.contains(answer));
        let printed = after.pop().map(|answer| answer.printed).unwrap_or_default();
        Ok(Comparison { is_accepted: before.iter().all(|answer| answer.is_accepted), is_same, printed })
    }

    fn lowered(&self, module: &Module<'_>) -> String {
        let mut edits = Edits::new();
        if let (Some(own), Some(newest)) = (module.version, self.newest)
            && own.pair() > newest
        {
            edits.replace(own.number, format!("{}.{}", newest.0, newest.1));
        }
        edits.apply(module.text).unwrap_or_default()
    }

    /// What it says of a text whose target is `module`'s.
    fn answer(&self, module: &Module<'_>, text: &str) -> Result<Answer> {
        // The same names each time, since objects and messages may hold them.
        let (input, output) = (self.folder.path().join("k.ptx"), self.folder.path().join("k.cubin"));
        std::fs::write(&input, text)?;
        let _ = std::fs::remove_file(&output);
        let target = format!("-arch={}", self.target(module));
        let out = Command::new(&self.file).arg(target).arg(&input).arg("-o").arg(&output).output()?;
        let printed = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
        let object = std::fs::read(&output).unwrap_or_default();
        let mut sections = Vec::new();
        if let Ok(file) = object::File::parse(&*object) {
            for section in file.sections() {
                let name = section.name().unwrap_or_default().to_owned();
                if !name.ends_with(".nv_debug_ptx_txt") {
                    sections.push((name, section.data().unwrap_or_default().to_vec()));
                }
            }
        }
        Ok(Answer { is_accepted: out.status.success() && !sections.is_empty(), printed, sections })
    }

    /// From CUDA 13 on ptxas assembles for sm_75 and later, whatever older target the text has.
    fn target(&self, module: &Module<'_>) -> String {
        let major = self.version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0);
        let arch = module.arch().unwrap_or("sm_90");
        let is_old = Arch::parse(arch).is_some_and(|arch| arch.number < 75);
        if major >= 13 && is_old { "sm_75".to_owned() } else { arch.to_owned() }
    }
}
