//! Bytes in JSON and in binary formats: values of handlers, contents of files.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Any bytes. They are written as a JSON string if they are UTF-8 text, else as `{"base64": "..."}`. Text with control
/// characters other than tabs and line breaks is written as base64 too, because JSON writes each as six characters.
/// Requests may use either form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Value(pub Vec<u8>);

impl Value {
    /// The bytes as text; invalid UTF-8 is replaced.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

/// Whether JSON writes a byte of a text as six characters.
fn is_escaped(byte: u8) -> bool {
    byte < b' ' && !b"\t\n\r".contains(&byte)
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return serializer.serialize_bytes(&self.0);
        }
        match std::str::from_utf8(&self.0) {
            Ok(text) if !text.bytes().any(is_escaped) => serializer.serialize_str(text),
            _ => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("base64", &STANDARD.encode(&self.0))?;
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Encoded {
            base64: String,
        }

        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a string or {\"base64\": \"...\"}")]
        enum Wire {
            Text(String),
            Encoded(Encoded),
        }

        if !deserializer.is_human_readable() {
            return serde_bytes::ByteBuf::deserialize(deserializer).map(|bytes| Self(bytes.into_vec()));
        }
        match Wire::deserialize(deserializer)? {
            Wire::Text(text) => Ok(Self(text.into_bytes())),
            Wire::Encoded(encoded) => STANDARD.decode(encoded.base64).map(Self).map_err(D::Error::custom),
        }
    }
}

impl JsonSchema for Value {
    fn schema_name() -> Cow<'static, str> {
        "Value".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Any bytes: a string if they are valid UTF-8 without control characters, else base64.",
            "oneOf": [
                { "type": "string" },
                {
                    "type": "object",
                    "properties": { "base64": { "type": "string", "contentEncoding": "base64" } },
                    "required": ["base64"],
                    "additionalProperties": false
                }
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_the_wire() {
        let cases: [(&[u8], &str); 4] = [
            (b"", "\"\""),
            (b"10 packets\n", "\"10 packets\\n\""),
            (b"\xff\0", "{\"base64\":\"/wA=\"}"),
            (b"\0\0", "{\"base64\":\"AAA=\"}"),
        ];
        for (bytes, wire) in cases {
            let value = Value(bytes.to_vec());
            assert_eq!(serde_json::to_string(&value).expect("JSON"), wire);
            assert_eq!(serde_json::from_str::<Value>(wire).expect("a value"), value);
        }
        assert_eq!(
            serde_json::from_str::<Value>("{\"base64\":\"YQ==\"}").expect("a value"),
            Value::from("a")
        );
        for bad in ["1", "{}", "{\"base64\":\"*\"}", "{\"base64\":\"YQ==\",\"more\":1}"] {
            assert!(serde_json::from_str::<Value>(bad).is_err(), "{bad}");
        }
    }
}
