//! The cookie file of X displays (`~/.Xauthority`).
//!
//! It is read here, and not by the X library, because the library looks at the variables of our own process, and a
//! private desktop's are never among them.

/// The one authorisation protocol that local servers ask for.
pub(super) const COOKIE_PROTOCOL: &[u8] = b"MIT-MAGIC-COOKIE-1";

/// Address family of a Unix socket; the address is the host's name.
pub(super) const FAMILY_LOCAL: u16 = 256;

const FAMILY_WILD: u16 = 65535;

/// One entry of the file.
#[derive(Debug, PartialEq, Eq)]
struct Entry<'a> {
    family: u16,
    address: &'a [u8],
    number: &'a [u8],
    name: &'a [u8],
    data: &'a [u8],
}

/// The cookie for a display in the contents of a cookie file: the first entry that fits, as libXau chooses. A file
/// that breaks off is read as far as it goes.
pub(super) fn cookie(file: &[u8], family: u16, address: &[u8], display: u16) -> Option<Vec<u8>> {
    let number = display.to_string();
    let mut rest = file;
    while let Some(entry) = entry(&mut rest) {
        let address_fits =
            entry.family == FAMILY_WILD || (entry.family == family && entry.address == address);
        let number_fits = entry.number.is_empty() || entry.number == number.as_bytes();
        if address_fits && number_fits && entry.name == COOKIE_PROTOCOL {
            return Some(entry.data.to_vec());
        }
    }
    None
}

fn entry<'a>(rest: &mut &'a [u8]) -> Option<Entry<'a>> {
    Some(Entry {
        family: number(rest)?,
        address: string(rest)?,
        number: string(rest)?,
        name: string(rest)?,
        data: string(rest)?,
    })
}

fn number(rest: &mut &[u8]) -> Option<u16> {
    let (bytes, tail) = rest.split_first_chunk::<2>()?;
    *rest = tail;
    Some(u16::from_be_bytes(*bytes))
}

fn string<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::from(number(rest)?);
    let (bytes, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::{FAMILY_LOCAL, cookie};

    fn file(entries: &[(u16, &str, &str, &str, &str)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (family, address, number, name, data) in entries {
            bytes.extend(family.to_be_bytes());
            for text in [address, number, name, data] {
                bytes.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
                bytes.extend(text.as_bytes());
            }
        }
        bytes
    }

    #[test]
    fn takes_the_entry_of_host_and_display() {
        let file = file(&[
            (FAMILY_LOCAL, "other", "5", "MIT-MAGIC-COOKIE-1", "a"),
            (FAMILY_LOCAL, "here", "4", "MIT-MAGIC-COOKIE-1", "b"),
            (FAMILY_LOCAL, "here", "5", "XDM-AUTHORIZATION-1", "c"),
            (FAMILY_LOCAL, "here", "5", "MIT-MAGIC-COOKIE-1", "d"),
        ]);
        assert_eq!(cookie(&file, FAMILY_LOCAL, b"here", 5).as_deref(), Some(&b"d"[..]));
        assert_eq!(cookie(&file, FAMILY_LOCAL, b"here", 6), None);
    }

    #[test]
    fn wild_entries_fit_every_host_and_empty_numbers_every_display() {
        let file = file(&[(65535, "", "", "MIT-MAGIC-COOKIE-1", "w")]);
        assert_eq!(cookie(&file, FAMILY_LOCAL, b"here", 5).as_deref(), Some(&b"w"[..]));
    }

    #[test]
    fn a_torn_file_is_read_as_far_as_it_goes() {
        let whole = file(&[
            (FAMILY_LOCAL, "here", "5", "MIT-MAGIC-COOKIE-1", "d"),
            (FAMILY_LOCAL, "here", "6", "MIT-MAGIC-COOKIE-1", "e"),
        ]);
        let torn = &whole[..whole.len() - 1];
        assert_eq!(cookie(torn, FAMILY_LOCAL, b"here", 5).as_deref(), Some(&b"d"[..]));
        assert_eq!(cookie(torn, FAMILY_LOCAL, b"here", 6), None);
    }
}
