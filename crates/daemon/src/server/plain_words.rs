//! The messages of the JSON parser in the words of JSON, without those of Rust.

use api::PortDriver;

/// What the parser expects, and what a client can send.
const EXPECTED: [(&str, &str); 13] = [
    ("u8", "a whole number from 0 to 255"),
    ("u16", "a whole number from 0 to 65535"),
    ("u32", "a whole number from 0 to 4294967295"),
    ("u64", "a whole number from 0 to 18446744073709551615"),
    ("usize", "a whole number from 0 to 18446744073709551615"),
    ("i64", "a whole number"),
    ("f32", "a number"),
    ("f64", "a number"),
    ("a boolean", "true or false"),
    ("a sequence", "an array"),
    ("a map", "an object"),
    ("unit", "null"),
    ("a borrowed string", "a string"),
];

/// What the parser found, and what the client sent.
const FOUND: [(&str, &str); 3] =
    [("map,", "an object,"), ("sequence,", "an array,"), ("unit value,", "null,")];

/// What is wrong with the text of a number.
const NUMBERS: [(&str, &str); 3] = [
    ("invalid digit found in string", "expected a whole number"),
    ("cannot parse integer from empty string", "expected a whole number"),
    ("number too large to fit in target type", "the number is too large"),
];

/// The message of the parser in plain words.
pub(super) fn plain(message: &str) -> String {
    if let Some(rest) = message.strip_prefix("missing field `kind`") {
        return format!("missing field `kind`, one of {}{rest}", kinds());
    }
    let Some((found, expected)) = message.split_once(", expected ") else {
        // Of the query, whose values are texts.
        let numbers = |text: &str| {
            NUMBERS.iter().fold(text.to_string(), |text, (rust, plain)| text.replace(rust, plain))
        };
        return numbers(message);
    };
    // The place follows.
    let (what, place) = match expected.rfind(" at line ") {
        Some(at) => expected.split_at(at),
        None => (expected, ""),
    };
    let words = EXPECTED.iter().find(|(rust, _)| *rust == what).map(|(_, words)| *words);
    let what = match what.starts_with("struct ") {
        true => "an object",
        false => words.unwrap_or(what),
    };
    let mut found = format!("{found},");
    for (rust, words) in FOUND {
        if let Some(before) = found.strip_suffix(rust).filter(|before| before.ends_with(": ")) {
            found = format!("{before}{words}");
        }
    }
    format!("{found} expected {what}{place}")
}

/// The kinds of port drivers, as the parser lists them for an unknown one.
fn kinds() -> String {
    let error = serde_json::from_str::<PortDriver>(r#"{"kind": ""}"#).err();
    let text = error.map(|error| error.to_string()).unwrap_or_default();
    let list = text.split_once("expected one of ").map_or("", |(_, list)| list);
    list.split(" at line ").next().unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{AddPort, CreateBox, CreateService};

    fn message<T: serde::de::DeserializeOwned>(text: &str) -> String {
        let error = serde_json::from_str::<T>(text).err().expect("an error");
        plain(&error.to_string())
    }

    #[test]
    fn messages_have_no_words_of_rust() {
        let port = |driver: &str| message::<AddPort>(&format!(r#"{{"name": "a", "driver": {driver}}}"#));
        assert!(
            port("\"null\"").starts_with(
                "invalid type: string \"null\", expected an object such as {\"kind\": \"tap\", \"device\": \"tap0\"} at line 1"
            ),
            "{}",
            port("\"null\"")
        );
        assert!(port("{}").starts_with("missing field `kind`, one of `tap`, "), "{}", port("{}"));
        assert!(port("{}").contains("`pcap`"), "{}", port("{}"));
        assert!(port(r#"{"kind": "tip"}"#).starts_with("unknown variant `tip`, expected one of `tap`, "));
        let replicas = |value: &str| {
            let mut start = message::<CreateService>(&format!(r#"{{"replicas": {value}}}"#));
            start.truncate(start.rfind(" at line ").expect("a place"));
            start
        };
        assert_eq!(
            replicas("70000"),
            "invalid value: integer `70000`, expected a whole number from 0 to 65535"
        );
        assert_eq!(replicas("{}"), "invalid type: an object, expected a whole number from 0 to 65535");
        assert_eq!(replicas("[]"), "invalid type: an array, expected a whole number from 0 to 65535");
        assert!(message::<CreateBox>("7").ends_with("expected an object at line 1 column 1"));
        assert!(message::<CreateBox>(r#"{"start": 1}"#).contains("expected true or false"));
    }
}
