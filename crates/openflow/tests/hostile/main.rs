//! Hostile controllers: the function here must survive every input. The fuzz target `openflow` calls it too.

#![allow(unreachable_pub, reason = "the fuzz target uses these modules too")]

#[path = "../support/messages.rs"]
mod messages;
mod session;

use random::Random;

#[test]
fn a_session_survives_any_bytes() {
    let mut random = Random::new(3);
    for _ in 0..300 {
        let mut bytes = Vec::new();
        for _ in 0..20 {
            let kind = random.below(30) as u8;
            bytes.extend(messages::message(kind, &mut random).encode(random.next() as u32).expect("short"));
        }
        for _ in 0..random.below(8) {
            let at = random.below(bytes.len() as u32) as usize;
            bytes[at] = random.next() as u8;
        }
        session::any_bytes(&bytes);
    }
}

/// The seeds of the fuzz target: messages of each type, all of which decode.
#[test]
fn a_session_survives_the_seeds() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/openflow");
    let files: Vec<_> = std::fs::read_dir(folder).expect("the seeds").flatten().collect();
    assert_eq!(files.len(), 30 + 16, "one for each type of message, and those of OpenFlow 1.0");
    for file in files {
        session::any_bytes(&std::fs::read(file.path()).expect("a seed"));
    }
}
