//! Click's low-level calls, as far as handlers can answer them: numbers packed in bytes instead of text.

use element::prelude::*;

/// Data go to the element.
const IN: u32 = 0x8000_0000;
/// Data come from the element.
const OUT: u32 = 0x4000_0000;
/// No pointers in the data, so that the call can come from afar.
const FLAT: u32 = 0x4000;

/// A call by its number, as it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call(pub(super) u32);

impl Call {
    /// From its hexadecimal number.
    pub(super) fn parse(text: &str) -> Option<Call> {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        u32::from_str_radix(digits, 16).ok().map(Call)
    }

    /// Bytes of its data.
    pub(super) fn size(self) -> usize {
        (self.0 >> 16 & 0xfff) as usize
    }

    /// Whether its data can be sent at all.
    pub(super) fn is_remote(self) -> bool {
        self.size() > 0 && self.0 & (IN | OUT) != 0 && self.0 & FLAT != 0
    }

    /// Whether data go to the element.
    pub(super) fn takes_data(self) -> bool {
        self.0 & IN != 0
    }

    /// Whether data come back.
    pub(super) fn gives_data(self) -> bool {
        self.0 & OUT != 0
    }

    /// Calls the handler that stands for it, of the element called `element`; numbers are in this machine's byte order.
    /// `None` if the element has no such call, or it refuses the data.
    pub(super) fn perform(self, cx: &Context, element: &str, data: &[u8]) -> Option<Vec<u8>> {
        let given = data.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes));
        let read = |handler: &str| {
            let value = cx.read_handler(&format!("{element}.{handler}"), "").ok()?;
            let value = value.trim().parse::<f64>().ok()?;
            // Counts wrap at 32 bits; -1 is a switch that is off.
            Some((value as i64 as u32).to_ne_bytes().to_vec())
        };
        // The number, the size and whether data go in and out; not whether the call may run beside others.
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
    fn numbers_say_what_they_carry() {
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
