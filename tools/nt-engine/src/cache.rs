//! Machine code that was assembled before, in a folder that all runs and ranks share.
//!
//! An entry is named by what it depends on, and by nothing else: the text, the architecture, the options, the assembler's
//! version.
//! It is a file `xx/HEX` of its own: a magic, the checksum of what follows, and both parts. Files are written beside
//! their place and renamed, so readers see whole ones or none; one that is damaged all the same (a full disk, a bad
//! one) is ignored, and replaced by the next run that makes it.
//!
//! The cache never fails anybody: what cannot be read is made again, what cannot be written is not kept. It holds to
//! a size; the entries that were used least recently go first.

use crate::assemble::{Arch, Assembled, Assembler, Options};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// The first bytes of an entry; the digit is raised when the form changes.
const MAGIC: &[u8; 8] = b"ntcubin1";

/// Magic, checksum, length of the words, length of the cubin.
const HEAD: usize = 8 + 32 + 8 + 8;

/// An entry beyond this is not read: none of ours is that long.
const LONGEST: u64 = 1 << 30;

/// A folder of assembled texts, or none.
#[derive(Debug)]
pub struct Cache {
    folder: Option<PathBuf>,
    limit: u64,
    /// Bytes written since the folder was last measured; the first write measures.
    added: AtomicU64,
}

/// What an entry depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key(blake3::Hash);

/// How much of an assembly an entry holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// Cubin and words.
    All,
    /// The words alone: of an original, only what it takes is asked.
    Words,
}

impl Key {
    /// The key of `text`, assembled for `arch` with `options` by `assembler`.
    pub fn of(text: &str, arch: Arch, options: &Options, assembler: &Assembler, kept: Kept) -> Key {
        let kept: &[u8] = match kept {
            Kept::All => b"all",
            Kept::Words => b"words",
        };
        let (version, arch) = (assembler.version().as_bytes(), arch.to_string());
        let options = options.words().join(" ");
        let mut hasher = blake3::Hasher::new();
        // Each part with its length, lest the end of one be taken for the beginning of the next.
        for part in [MAGIC.as_slice(), kept, version, arch.as_bytes(), options.as_bytes(), text.as_bytes()] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Key(hasher.finalize())
    }
}

impl Cache {
    /// How large a cache may grow, unless told otherwise.
    pub const LIMIT: u64 = 1 << 30;

    /// No cache: everything is made again.
    pub fn none() -> Self {
        Cache { folder: None, limit: 0, added: AtomicU64::new(0) }
    }

    /// A cache in `folder`, which is made when the first entry is kept, of at most `limit` bytes.
    pub fn at(folder: &Path, limit: u64) -> Self {
        Cache { folder: Some(folder.to_owned()), limit, added: AtomicU64::new(u64::MAX / 2) }
    }

    /// The user's cache folder: `nt` in XDG_CACHE_HOME, else in `.cache` of the home folder.
    pub fn users_folder() -> Option<PathBuf> {
        // The specification has relative paths ignored: https://specifications.freedesktop.org/basedir-spec/
        let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")))?;
        Some(base.join("nt"))
    }

    /// The entry of that key, if it is there and sound.
    pub fn get(&self, key: Key) -> Option<Assembled> {
        let path = self.path(key)?;
        let mut file = File::open(&path).ok()?;
        let mut bytes = Vec::new();
        (&mut file).take(LONGEST).read_to_end(&mut bytes).ok()?;
        let entry = decode(&bytes)?;
        // The time of last use, which decides what goes first. Another user's cache may be read-only.
        let _ = file.set_modified(SystemTime::now());
        Some(entry)
    }

    /// Keeps an entry, if that can be.
    pub fn put(&self, key: Key, entry: &Assembled) {
        let Some(path) = self.path(key) else { return };
        let bytes = encode(entry);
        if bytes.len() as u64 > self.limit.min(LONGEST) {
            return;
        }
        // Whatever fails here costs the next run an assembly, no more.
        let _ = write(&path, &bytes);
        let added = self.added.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        if added > self.limit / 16 {
            self.added.store(0, Ordering::Relaxed);
            let _ = self.sweep();
        }
    }

    fn path(&self, key: Key) -> Option<PathBuf> {
        let hex = key.0.to_hex();
        let folder = self.folder.as_ref()?;
        Some(folder.join(&hex[..2]).join(&hex[2..]))
    }

    /// Measures the folder and, if it is over its limit, removes what was used least recently until a quarter is free.
    fn sweep(&self) -> std::io::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let mut files = Vec::new();
        for part in std::fs::read_dir(folder)? {
            let part = part?.path();
            // The cache's own folders alone: whatever else somebody keeps here is not ours to count or to remove.
            let ours = part.file_name().and_then(|name| name.to_str()).is_some_and(|name| is_hex(name, 2));
            for file in if ours { std::fs::read_dir(&part)? } else { continue } {
                let file = file?;
                let name = file.file_name();
                let Some(name) = name.to_str() else { continue };
                let (Ok(data), path) = (file.metadata(), file.path()) else { continue };
                let used = data.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                if is_hex(name, 62) {
                    files.push((used, data.len(), path));
                } else if name.starts_with(BESIDE) && used.elapsed().is_ok_and(|age| age > ABANDONED) {
                    // Half an entry, left by a process that was killed.
                    let _ = std::fs::remove_file(path);
                }
            }
        }
        let mut total: u64 = files.iter().map(|(_, len, _)| len).sum();
        if total <= self.limit {
            return Ok(());
        }
        files.sort();
        for (_, len, path) in files {
            if total <= self.limit / 4 * 3 {
                break;
            }
            // Another process may have been faster.
            let _ = std::fs::remove_file(path);
            total -= len;
        }
        Ok(())
    }
}

/// Names of files that are being written.
const BESIDE: &str = ".nt-";

/// A file that is still being written after this long has lost its writer.
const ABANDONED: Duration = Duration::from_secs(3600);

fn is_hex(name: &str, len: usize) -> bool {
    name.len() == len && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::Builder::new().prefix(BESIDE).tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

fn encode(entry: &Assembled) -> Vec<u8> {
    let (words, cubin) = (entry.output.as_bytes(), entry.cubin.as_slice());
    let mut body = Vec::with_capacity(16 + words.len() + cubin.len());
    body.extend_from_slice(&(words.len() as u64).to_le_bytes());
    body.extend_from_slice(&(cubin.len() as u64).to_le_bytes());
    body.extend_from_slice(words);
    body.extend_from_slice(cubin);
    let mut bytes = Vec::with_capacity(HEAD + body.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(blake3::hash(&body).as_bytes());
    bytes.extend_from_slice(&body);
    bytes
}

fn decode(bytes: &[u8]) -> Option<Assembled> {
    let (hash, body) = bytes.strip_prefix(MAGIC)?.split_first_chunk::<32>()?;
    if blake3::hash(body) != *hash {
        return None;
    }
    let (words, rest) = body.split_first_chunk::<8>()?;
    let (cubin, rest) = rest.split_first_chunk::<8>()?;
    let (words, cubin) = (u64::from_le_bytes(*words), u64::from_le_bytes(*cubin));
    let (words, rest) = rest.split_at_checked(usize::try_from(words).ok()?)?;
    if rest.len() as u64 != cubin {
        return None;
    }
    Some(Assembled { output: String::from_utf8(words.to_vec()).ok()?, cubin: rest.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u32) -> Key {
        Key(blake3::hash(&n.to_le_bytes()))
    }

    fn entry(len: usize) -> Assembled {
        Assembled { cubin: vec![7; len], output: "ptxas info".to_owned() }
    }

    #[test]
    fn what_was_put_is_got_by_another() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(&folder.path().join("deep/er"), Cache::LIMIT);
        assert_eq!(cache.get(key(1)), None);
        cache.put(key(1), &entry(100));
        let other = Cache::at(&folder.path().join("deep/er"), Cache::LIMIT);
        assert_eq!(other.get(key(1)), Some(entry(100)));
        assert_eq!(other.get(key(2)), None);
        assert_eq!(Cache::none().get(key(1)), None);
    }

    #[test]
    fn a_damaged_entry_is_ignored_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path(), Cache::LIMIT);
        cache.put(key(1), &entry(100));
        let path = cache.path(key(1)).unwrap();
        let sound = std::fs::read(&path).unwrap();
        for at in 0..sound.len() {
            let mut cut = sound.clone();
            cut.truncate(at);
            std::fs::write(&path, &cut).unwrap();
            assert_eq!(cache.get(key(1)), None, "cut at {at}");
            let mut flipped = sound.clone();
            flipped[at] ^= 0x10;
            std::fs::write(&path, &flipped).unwrap();
            assert_eq!(cache.get(key(1)), None, "flipped at {at}");
        }
        cache.put(key(1), &entry(100));
        assert_eq!(cache.get(key(1)), Some(entry(100)));
    }

    #[test]
    fn it_keeps_to_its_size_and_drops_the_oldest() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path(), 10_000);
        std::fs::write(folder.path().join("notes.txt"), vec![0; 50_000]).unwrap();
        for n in 0..20 {
            cache.put(key(n), &entry(1000));
            let age = Duration::from_secs(u64::from(100 - n));
            if let Ok(file) = File::options().write(true).open(cache.path(key(n)).unwrap()) {
                file.set_modified(SystemTime::now() - age).unwrap();
            }
        }
        let left: Vec<u32> = (0..20).filter(|&n| cache.path(key(n)).unwrap().exists()).collect();
        assert!(left.len() <= 10 && left.contains(&19) && !left.contains(&0), "{left:?}");
        assert!(folder.path().join("notes.txt").exists());
    }

    #[test]
    fn an_unwritable_folder_harms_nobody() {
        let cache = Cache::at(Path::new("/proc/nowhere"), Cache::LIMIT);
        cache.put(key(1), &entry(1));
        assert_eq!(cache.get(key(1)), None);
    }
}
