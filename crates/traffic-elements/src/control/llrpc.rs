//! Click's low-level calls, as far as handlers can answer them: binary numbers instead of text.

use element::prelude::*;

/// The caller sends data to the element.
const IN: u32 = 0x8000_0000;
/// The element returns data.
const OUT: u32 = 0x4000_0000;
/// The data contain no pointers, so that the call can be remote.
const FLAT: u32 = 0x4000;

/// A call by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call(pub(super) u32);

impl Call {
    /// Parses the hexadecimal number.
    pub(super) fn parse(text: &str) -> Option<Call> {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        u32::from_str_radix(digits, 16).ok().map(Call)
    }

    /// Size of its data in bytes.
    pub(super) fn size(self) -> usize {
        (self.0 >> 16 & 0xfff) as usize
    }

    /// Whether it can be called remotely.
    pub(super) fn is_remote(self) -> bool {
        self.size() > 0 && self.0 & (IN | OUT) != 0 && self.0 & FLAT != 0
    }

    /// Whether it sends data to the element.
    pub(super) fn takes_data(self) -> bool {
        self.0 & IN != 0
    }

    /// Whether it returns data.
    pub(super) fn gives_data(self) -> bool {
        self.0 & OUT != 0
    }

    /// Calls the corresponding handler of the element `element`. Numbers are in native byte order. Returns `None` if
    /// the element has no such call or rejects the data.
    pub(super) fn perform(self, cx: &Context, element: &str, data: &[u8]) -> Option<Vec<u8>> {
        let given = data.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes));
        let read = |handler: &str| {
            let value = cx.read_handler(&format!("{element}.{handler}"), "").ok()?;
            let value = value.trim().parse::<f64>().ok()?;
            // Counts wrap at 32 bits; -1 means that a switch is off.
            Some((value as i64 as u32).to_ne_bytes().to_vec())
        };
        // The number includes the size and the directions, but not whether calls may run concurrently.
        match (self.0 & !0x8000, given) {
            (0xc004_4001, Some(0)) => read("rate"),
            (0xc004_4003, Some(0)) => read("count"),
            (0xc004_4003, Some(1)) => read("byte_count"),
            (0x4004_4005, _) => read("switch"),
            (0x8004_4006, Some(output)) => {
                let value = output.cast_signed().to_string();
                cx.write_handler(&format!("{element}.switch"), &value).ok().map(|()| Vec::new())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_encode_size_and_direction() {
        let says = |text| {
            Call::parse(text)
                .map(|call| (call.size(), call.takes_data(), call.gives_data(), call.is_remote()))
        };
        assert_eq!(says("4004C005"), Some((4, false, true, true)));
        assert_eq!(says("0x80044006"), Some((4, true, false, true)));
        assert_eq!(says("20000011"), Some((0, false, false, false)));
        assert_eq!(says("x"), None);
    }
}
