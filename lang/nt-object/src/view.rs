//! Little-endian fields of bytes that may be cut anywhere: no read can panic or leave what holds it.

use crate::error::{Error, Fault};

/// Bytes that know where in the file they lie, so that an error can say it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// The file's offset of the first of them.
    pub at: u64,
}

impl<'a> View<'a> {
    /// Bytes that begin at `at` in their file.
    pub(crate) fn new(bytes: &'a [u8], at: u64) -> Self {
        View { bytes, at }
    }

    /// How many bytes there are.
    pub(crate) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The `len` bytes from `offset` on.
    pub(crate) fn part(&self, field: &'static str, offset: u64, len: u64) -> Result<View<'a>, Error> {
        let there = self.len().saturating_sub(offset);
        let range = || {
            let start = usize::try_from(offset).ok()?;
            let end = start.checked_add(usize::try_from(len).ok()?)?;
            self.bytes.get(start..end)
        };
        let at = self.at.saturating_add(offset);
        match range() {
            Some(bytes) => Ok(View { bytes, at }),
            None => Err(Error::new(at, field, Fault::Cut { needed: len, there })),
        }
    }

    /// All bytes from `offset` on; none if there are none.
    pub(crate) fn rest(&self, offset: u64) -> View<'a> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.bytes.len());
        View { bytes: self.bytes.get(start..).unwrap_or_default(), at: self.at.saturating_add(start as u64) }
    }

    fn array<const N: usize>(&self, field: &'static str, offset: u64) -> Result<[u8; N], Error> {
        let part = self.part(field, offset, N as u64)?;
        part.bytes
            .first_chunk()
            .copied()
            .ok_or_else(|| Error::new(part.at, field, Fault::Cut { needed: N as u64, there: part.len() }))
    }

    pub(crate) fn u16(&self, field: &'static str, offset: u64) -> Result<u16, Error> {
        self.array(field, offset).map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&self, field: &'static str, offset: u64) -> Result<u32, Error> {
        self.array(field, offset).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&self, field: &'static str, offset: u64) -> Result<u64, Error> {
        self.array(field, offset).map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_read_beyond_the_end() {
        let view = View::new(&[1, 2, 3], 0x100);
        assert_eq!(view.u16("f", 1).unwrap(), 0x0302);
        assert_eq!(view.u16("f", 2).unwrap_err().to_string(), "f at 0x102: 2 bytes needed, 1 are there");
        assert_eq!(
            view.part("f", u64::MAX, 1 << 63).unwrap_err().fault,
            Fault::Cut { needed: 1 << 63, there: 0 }
        );
        assert_eq!(view.rest(u64::MAX).len(), 0);
        assert_eq!(view.rest(1).bytes, [2, 3]);
    }
}
