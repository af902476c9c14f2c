//! Writing and reading little-endian fields.

/// A body that is not what it should be: too short, a length beyond the end, a number that names nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("malformed message or frame")
    }
}

impl std::error::Error for Malformed {}

/// Appends fields to a buffer.
#[derive(Debug, Default)]
pub struct Writer {
    /// What was written so far.
    pub bytes: Vec<u8>,
}

macro_rules! integers {
    ($($ty:ident),*) => {
        impl Writer {
            $(
                #[doc = concat!("Appends a `", stringify!($ty), "`, little-endian.")]
                pub fn $ty(&mut self, value: $ty) {
                    self.bytes.extend_from_slice(&value.to_le_bytes());
                }
            )*
        }
        impl Reader<'_> {
            $(
                #[doc = concat!("Takes a `", stringify!($ty), "`, little-endian.")]
                ///
                /// # Errors
                /// Too few bytes are left.
                pub fn $ty(&mut self) -> Result<$ty, Malformed> {
                    let (head, rest) = self.rest.split_first_chunk().ok_or(Malformed)?;
                    self.rest = rest;
                    Ok($ty::from_le_bytes(*head))
                }
            )*
        }
    };
}

integers!(u8, u16, u32, u64);

impl Writer {
    /// An empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a length (u32) and the bytes; more than 4 GiB are cut, which no caller has.
    pub fn blob(&mut self, bytes: &[u8]) {
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.u32(len);
        self.bytes.extend_from_slice(&bytes[..len as usize]);
    }

    /// Appends a length and a text.
    pub fn text(&mut self, text: &str) {
        self.blob(text.as_bytes());
    }

    /// Appends three u32, as grids and blocks are.
    pub fn three(&mut self, values: [u32; 3]) {
        for value in values {
            self.u32(value);
        }
    }
}

/// Takes fields from a slice.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'b> {
    rest: &'b [u8],
}

impl<'b> Reader<'b> {
    /// Reads from the beginning of `bytes`.
    pub fn new(bytes: &'b [u8]) -> Self {
        Reader { rest: bytes }
    }

    /// What has not been taken yet.
    pub fn rest(&self) -> &'b [u8] {
        self.rest
    }

    /// Takes `n` bytes.
    ///
    /// # Errors
    /// Fewer are left.
    pub fn take(&mut self, n: usize) -> Result<&'b [u8], Malformed> {
        let (head, rest) = self.rest.split_at_checked(n).ok_or(Malformed)?;
        self.rest = rest;
        Ok(head)
    }

    /// Takes a length (u32) and as many bytes.
    ///
    /// # Errors
    /// Fewer are left.
    pub fn blob(&mut self) -> Result<&'b [u8], Malformed> {
        let len = self.u32()?;
        self.take(len as usize)
    }

    /// Takes a text; bytes that are no UTF-8 are replaced, since names come from other people's files.
    ///
    /// # Errors
    /// Fewer bytes are left than its length says.
    pub fn text(&mut self) -> Result<String, Malformed> {
        Ok(String::from_utf8_lossy(self.blob()?).into_owned())
    }

    /// Takes three u32.
    ///
    /// # Errors
    /// Fewer are left.
    pub fn three(&mut self) -> Result<[u32; 3], Malformed> {
        Ok([self.u32()?, self.u32()?, self.u32()?])
    }

    /// Takes a count (u32) and as many items.
    ///
    /// # Errors
    /// As `item` says. The list grows item by item, so a false count allocates nothing.
    pub fn list<T>(&mut self, item: impl Fn(&mut Self) -> Result<T, Malformed>) -> Result<Vec<T>, Malformed> {
        let count = self.u32()?;
        let mut list = Vec::new();
        for _ in 0..count {
            list.push(item(self)?);
        }
        Ok(list)
    }
}
