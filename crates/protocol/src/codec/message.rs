//! Encodes and decodes whole messages.

use super::decoder::Decoder;
use super::error::{DecodeError, EncodeError};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Appends an encoded message to `bytes`.
pub fn encode_to<T: Serialize>(message: &T, mut bytes: Vec<u8>) -> Result<Vec<u8>, EncodeError> {
    rmp_serde::encode::write_named(&mut bytes, message)?;
    Ok(bytes)
}

/// Decodes a message. Returns it with the number of bytes that follow it.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, usize), DecodeError> {
    let mut decoder = Decoder::new(bytes);
    let message = T::deserialize(&mut decoder)?;
    Ok((message, decoder.left()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use std::collections::BTreeMap;
    use std::net::IpAddr;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Everything {
        flag: bool,
        numbers: (u8, u16, u32, u64, i8, i16, i32, i64),
        real: (f32, f64),
        letter: char,
        text: String,
        bytes: serde_bytes::ByteBuf,
        nothing: (),
        #[serde(default)]
        maybe: Option<Wrapped>,
        list: Vec<Choice>,
        map: BTreeMap<String, [u8; 2]>,
        address: IpAddr,
        tagged: Tagged,
        #[serde(flatten)]
        flat: Flat,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Wrapped(i64);

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Flat {
        inner: Option<u64>,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    enum Choice {
        Unit,
        New(u16),
        Tuple(u16, String),
        Struct { value: Option<bool> },
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "kind")]
    enum Tagged {
        One { value: f64 },
    }

    fn everything() -> Everything {
        Everything {
            flag: true,
            numbers: (200, 300, 70_000, u64::MAX, -100, -300, -70_000, i64::MIN),
            real: (0.5, -0.25),
            letter: 'ß',
            text: "x".repeat(300),
            bytes: vec![0, 255].into(),
            nothing: (),
            maybe: Some(Wrapped(-1)),
            list: vec![
                Choice::Unit,
                Choice::New(7),
                Choice::Tuple(8, "eight".into()),
                Choice::Struct { value: Some(false) },
            ],
            map: (0..20).map(|number| (number.to_string(), [number, 2])).collect(),
            address: "2001:db8::1".parse().unwrap(),
            tagged: Tagged::One { value: 2.5 },
            flat: Flat { inner: None },
        }
    }

    fn encoded<T: Serialize>(value: &T) -> Vec<u8> {
        encode_to(value, Vec::new()).unwrap()
    }

    fn refusal<T: DeserializeOwned + std::fmt::Debug>(bytes: &[u8]) -> String {
        decode::<T>(bytes).unwrap_err().to_string()
    }

    #[test]
    fn every_kind_of_value_comes_back() {
        let mut bytes = encoded(&everything());
        bytes.extend([1, 2, 3]);
        assert_eq!(decode::<Everything>(&bytes).unwrap(), (everything(), 3));
    }

    #[test]
    fn fields_may_be_added() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Old {
            flag: bool,
            nothing: (),
        }
        assert_eq!(
            decode::<Old>(&encoded(&everything())).unwrap(),
            (Old { flag: true, nothing: () }, 0),
            "fields that the receiver does not know are skipped"
        );
        let missing = refusal::<Everything>(&encoded(&Old { flag: true, nothing: () }));
        assert_eq!(missing, "missing field `numbers`");
    }

    #[test]
    fn wrong_bytes_are_refused() {
        let bytes = encoded(&everything());
        for length in 0..bytes.len() {
            assert_eq!(refusal::<Everything>(&bytes[..length]), "the message ends too early", "{length}");
        }
        assert_eq!(refusal::<u8>(&encoded(&256)), "invalid value: integer `256`, expected u8");
        assert_eq!(refusal::<u8>(&encoded(&"256")), "invalid type: string \"256\", expected u8");
        assert_eq!(refusal::<Vec<u8>>(&encoded(&7)), "invalid type: integer `7`, expected a sequence");
        assert_eq!(refusal::<(u8, u8)>(&encoded(&(1, 2, 3))), "1 item more than expected");
        assert_eq!(refusal::<String>(&[0xa1, 0xff]), "a text is not UTF-8");
        assert_eq!(refusal::<String>(&[0xc1]), "a value of the unknown kind 0xc1");
        assert_eq!(refusal::<Choice>(&encoded(&"New")), "the variant lacks its value");
        assert_eq!(refusal::<Choice>(&[0x82, 0xc0, 0xc0]), "a variant needs a name or a map with one item");
        let unknown = refusal::<Choice>(&encoded(&"Other"));
        assert_eq!(unknown, "unknown variant `Other`, expected one of `Unit`, `New`, `Tuple`, `Struct`");
    }

    #[test]
    fn deep_messages_are_refused() {
        #[derive(Debug, Deserialize)]
        struct Nested(#[allow(dead_code, reason = "only its depth matters")] Vec<Self>);
        let lists = |depth: usize| [vec![0x91; depth - 1], vec![0x90]].concat();
        assert!(decode::<Nested>(&lists(64)).is_ok());
        assert_eq!(refusal::<Nested>(&lists(65)), "the message is nested too deeply");
        assert!(decode::<serde::de::IgnoredAny>(&lists(1_000_000)).is_ok(), "what is skipped takes no stack");
    }
}
