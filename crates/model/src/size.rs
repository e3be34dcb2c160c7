//! Quantities: bytes, slots, shares of CPU time.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number of bytes. In JSON a number; a text such as `"8M"` is read, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// Text that is not a valid size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeError;

impl fmt::Display for SizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a size is a number of bytes, optionally followed by K, M, G or T, as in 8M")
    }
}

impl std::error::Error for SizeError {}

/// The units of sizes: powers of 1,024.
const UNITS: [(char, u32); 4] = [('T', 40), ('G', 30), ('M', 20), ('K', 10)];

impl FromStr for Size {
    type Err = SizeError;

    /// `8388608`, `8M`, `8m`, `8MiB` and `8MB` are the same.
    fn from_str(text: &str) -> Result<Self, SizeError> {
        let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let (number, unit) = text.split_at(digits.len());
        let unit = unit.to_ascii_uppercase();
        let shift = match unit.as_str() {
            "" | "B" => 0,
            _ => {
                let (letter, shift) =
                    UNITS.into_iter().find(|(letter, _)| unit.starts_with(*letter)).ok_or(SizeError)?;
                let rest = unit.strip_prefix(letter).unwrap_or_default();
                if !["", "B", "IB"].contains(&rest) {
                    return Err(SizeError);
                }
                shift
            }
        };
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(SizeError);
        }
        let number: u64 = number.parse().map_err(|_| SizeError)?;
        number.checked_mul(1 << shift).map(Self).ok_or(SizeError)
    }
}

impl fmt::Display for Size {
    /// Prints the size in the largest unit that gives a whole number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = UNITS.into_iter().find(|(_, shift)| self.0 > 0 && self.0.is_multiple_of(1 << shift));
        match exact {
            Some((letter, shift)) => f.pad(&format!("{}{letter}", self.0 >> shift)),
            None => f.pad(&self.0.to_string()),
        }
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a number of bytes or a text such as \"8M\"")]
        enum Wire {
            Number(u64),
            Text(String),
        }
        match Wire::deserialize(deserializer)? {
            Wire::Number(bytes) => Ok(Self(bytes)),
            Wire::Text(text) => text.parse().map_err(D::Error::custom),
        }
    }
}

impl JsonSchema for Size {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Bytes: a number, or a text such as 8M (powers of 1,024).",
            "oneOf": [
                { "type": "integer", "minimum": 0 },
                { "type": "string", "pattern": "^[0-9]+([KMGTkmgt]([iI]?[bB])?|[bB])?$" }
            ]
        })
    }
}

/// Defines a number with bounds.
macro_rules! bounded {
    ($type:ident, $error:ident, $low:expr, $high:expr, $default:expr, $step:ident: $is:expr, $description:literal, $wanted:literal) => {
        #[doc = $description]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(into = "u32", try_from = "u32")]
        pub struct $type(u32);

        #[doc = concat!("A number that is out of range: ", $wanted, ".")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $error;

        impl fmt::Display for $error {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($wanted)
            }
        }

        impl std::error::Error for $error {}

        impl TryFrom<u32> for $type {
            type Error = $error;

            fn try_from($step: u32) -> Result<Self, $error> {
                if ($low..=$high).contains(&$step) && $is { Ok(Self($step)) } else { Err($error) }
            }
        }

        impl From<$type> for u32 {
            fn from(number: $type) -> u32 {
                number.0
            }
        }

        impl FromStr for $type {
            type Err = $error;

            fn from_str(text: &str) -> Result<Self, $error> {
                text.parse::<u32>().map_err(|_| $error)?.try_into()
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl Default for $type {
            fn default() -> Self {
                Self($default)
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": "integer", "minimum": $low, "maximum": $high, "description": $description
                })
            }
        }
    };
}

bounded!(
    Ring, RingError, 64u32, 2048u32, 256, slots: slots.is_power_of_two(),
    "Slots of each ring of a port: a power of two from 64 to 2,048.",
    "a ring has 64, 128, 256, 512, 1024 or 2048 slots"
);

bounded!(
    Weight, WeightError, 1u32, 10_000u32, 100, weight: true,
    "A relative share: twice the weight gives twice the time.",
    "a weight is a number from 1 to 10000; 100 is usual"
);

bounded!(
    CoreCount, CoreCountError, 1u32, 16u32, 1, cores: true,
    "The number of engines that run the configuration of a box, each on a core of its own: 1 to 16.",
    "a box has 1 to 16 cores"
);

impl CoreCount {
    /// Whether it is 1.
    pub fn is_one(&self) -> bool {
        self.0 == 1
    }

    /// The number.
    pub fn number(self) -> usize {
        self.0 as usize
    }
}

bounded!(
    Vni, VniError, 0u32, 0xff_ffffu32, 0, number: true,
    "The number of a virtual network (VNI): 24 bits.",
    "a VNI is a number from 0 to 16777215"
);

bounded!(
    UdpPort, UdpPortError, 1u32, 65_535u32, 4789, port: true,
    "A UDP port.",
    "a UDP port is a number from 1 to 65535"
);

bounded!(
    TunnelMtu, TunnelMtuError, 576u32, 2034u32, 1450, bytes: true,
    "The greatest length of packets in a tunnel, in bytes. A switch has frames of 2,048 bytes at most.",
    "the MTU of a tunnel is a number from 576 to 2034, because a switch has frames of 2048 bytes at most"
);

impl UdpPort {
    /// The number.
    pub fn number(self) -> u16 {
        // The bounds are those of the type.
        self.0 as u16
    }
}

impl TunnelMtu {
    /// The number.
    pub fn bytes(self) -> u16 {
        // The bounds are those of the type.
        self.0 as u16
    }
}

/// A share of CPU time in CPUs, to a thousandth. In JSON a number: `0.5` is half a CPU. A text such as `"50%"` is
/// read, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cores {
    thousandths: u32,
}

/// A number of CPUs out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoresError;

impl fmt::Display for CoresError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a share of CPU time is a number of CPUs from 0.001 to 4096 such as 0.5, or a percentage of one CPU such as 50%")
    }
}

impl std::error::Error for CoresError {}

impl Cores {
    /// The number of CPUs.
    pub fn number(self) -> f64 {
        f64::from(self.thousandths) / 1e3
    }
}

impl TryFrom<f64> for Cores {
    type Error = CoresError;

    fn try_from(number: f64) -> Result<Self, CoresError> {
        let thousandths = (number * 1e3).round();
        // The comparison also rejects NaN.
        if (1.0..=4_096_000.0).contains(&thousandths) {
            Ok(Self { thousandths: thousandths as u32 })
        } else {
            Err(CoresError)
        }
    }
}

impl FromStr for Cores {
    type Err = CoresError;

    fn from_str(text: &str) -> Result<Self, CoresError> {
        let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
        Self::try_from(number.trim().parse::<f64>().map_err(|_| CoresError)? / unit)
    }
}

impl fmt::Display for Cores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number().fmt(f)
    }
}

impl Serialize for Cores {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.number())
    }
}

impl<'de> Deserialize<'de> for Cores {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a number of CPUs or a text such as \"50%\"")]
        enum Wire {
            Number(f64),
            Text(String),
        }
        match Wire::deserialize(deserializer)? {
            Wire::Number(number) => number.try_into().map_err(D::Error::custom),
            Wire::Text(text) => text.parse().map_err(D::Error::custom),
        }
    }
}

impl JsonSchema for Cores {
    fn schema_name() -> Cow<'static, str> {
        "Cores".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "CPUs: a number such as 0.5, or a percentage of a CPU such as 50%.",
            "oneOf": [
                { "type": "number", "minimum": 0.001, "maximum": 4096 },
                { "type": "string", "pattern": "^[0-9.]+%?$" }
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        let cases = [
            ("0", 0, "0"),
            ("1000", 1000, "1000"),
            ("8M", 8 << 20, "8M"),
            ("8192k", 8 << 20, "8M"),
            ("3GiB", 3 << 30, "3G"),
            ("1536KB", 1536 << 10, "1536K"),
            ("7B", 7, "7"),
        ];
        for (text, bytes, shown) in cases {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
            assert_eq!(Size(bytes).to_string(), shown);
        }
        for bad in
            ["", "M", "-1", "+1", "1.5M", "8MM", "8X", "8Bi", "99999999T", "18446744073709551616", "8é"]
        {
            assert_eq!(bad.parse::<Size>(), Err(SizeError), "{bad}");
        }
        assert_eq!(serde_json::from_str::<Size>("\"8M\"").expect("a size"), Size(8 << 20));
        assert_eq!(serde_json::to_string(&Size(8 << 20)).expect("JSON"), "8388608");
    }

    #[test]
    fn rings_and_weights_have_bounds() {
        assert_eq!("1024".parse::<Ring>().map(u32::from), Ok(1024));
        for bad in ["32", "100", "4096", "", "-64"] {
            assert_eq!(bad.parse::<Ring>(), Err(RingError), "{bad}");
        }
        assert!(serde_json::from_str::<Ring>("100").is_err());
        assert_eq!("200".parse::<Weight>().map(u32::from), Ok(200));
        assert_eq!("0".parse::<Weight>(), Err(WeightError));
        assert_eq!("16777215".parse::<Vni>().map(u32::from), Ok(0xff_ffff));
        assert_eq!("16777216".parse::<Vni>(), Err(VniError));
        assert_eq!("65535".parse::<UdpPort>().map(UdpPort::number), Ok(65_535));
        assert_eq!(["0", "65536"].map(str::parse::<UdpPort>), [Err(UdpPortError); 2]);
        assert_eq!("2034".parse::<TunnelMtu>().map(TunnelMtu::bytes), Ok(2034));
        assert_eq!(["575", "2035", "9000"].map(str::parse::<TunnelMtu>), [Err(TunnelMtuError); 3]);
    }

    #[test]
    fn shares_of_cpu_time_are_numbers_or_percentages() {
        for (text, number) in [("0.5", 0.5), ("50%", 0.5), ("2", 2.0), ("0.1%", 0.001)] {
            assert_eq!(text.parse::<Cores>().map(Cores::number), Ok(number), "{text}");
        }
        for bad in ["0", "-1", "NaN", "inf", "1e9", "%", ""] {
            assert_eq!(bad.parse::<Cores>(), Err(CoresError), "{bad}");
        }
        assert_eq!(serde_json::from_str::<Cores>("\"25%\"").map(Cores::number).expect("a share"), 0.25);
    }
}
