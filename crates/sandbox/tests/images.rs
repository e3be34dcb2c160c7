//! Images that users give: boxes run them beside those of the host's own image.

mod support;

use boundary::Request;
use sandbox::{CreateError, HostError, ImageError, Settings, Target, Worker};
use std::sync::Arc;
use support::{WAIT_TIMEOUT, begin, exchange, host, settings, until};
use test_support::{Capability, require};

fn packets() -> Vec<Vec<u8>> {
    (0..100u8).map(|number| vec![number; 64 + usize::from(number)]).collect()
}

/// The same image serves many boxes at once, in virtual machines and in processes, and copies of them.
#[test]
fn boxes_of_another_image_run_and_are_copied() {
    let image = host().load(image::PROBE).unwrap();
    let settings = Settings { image: Some(image.clone()), ..settings(1) };
    let check = |target: Target| {
        let mut first = host().create(target, &settings).unwrap();
        begin(&mut first, "mirror");
        let mut port = first.take_port(0).unwrap();
        let expected = exchange(&first.doorbell(), (&mut port, None), &packets(), 100);
        let mut idle = host().create(target, &settings).unwrap();
        begin(&mut idle, "mirror");
        // The line that it prints at its installation.
        until("the box prints its line", || idle.event().unwrap().is_some());
        let snapshot = idle.snapshot(WAIT_TIMEOUT).unwrap();
        // A copy runs the image of its original, whatever the settings say.
        let plain = support::settings(1);
        for settings in [&settings, &plain] {
            let mut copy = host().restore(target, &snapshot, settings).unwrap();
            copy.start().unwrap();
            let mut port = copy.take_port(0).unwrap();
            assert_eq!(exchange(&copy.doorbell(), (&mut port, None), &packets(), 100), expected);
        }
        assert_eq!(
            first.call(&Request::Read { name: "", handler: "value", argument: b"" }, WAIT_TIMEOUT).unwrap(),
            b""
        );
    };
    if require(Capability::Kvm) {
        check(Target::Vm(&Worker::start().unwrap()));
    }
    check(Target::Process);
    assert_eq!(Arc::strong_count(&image), 2, "only these settings have it");
}

#[test]
fn an_image_that_cannot_run_is_refused() {
    let refusal = |image: &[u8]| match host().load(image) {
        Err(HostError::Image(error)) => error,
        other => panic!("{other:?}"),
    };
    assert_eq!(refusal(b"#!/bin/sh\n"), ImageError::NotElf);
    assert_eq!(refusal(&image::PROBE[..1000]), ImageError::Truncated);
    // The version follows the name in the note.
    let name = b"Clickbox\0\0\0\0";
    let at = image::PROBE.windows(name.len()).position(|bytes| bytes == name).unwrap() + name.len();
    let mut other = image::PROBE.to_vec();
    other[at] += 1;
    let message = refusal(&other).to_string();
    assert!(message.contains("build it again"), "{message}");
}

/// The variables and the stack of an image are part of the box's memory.
#[test]
fn a_box_is_not_larger_than_it_may_be() {
    let mut large = image::PROBE.to_vec();
    let table = usize::try_from(u64::from_le_bytes(large[32..40].try_into().unwrap())).unwrap();
    let count = usize::from(u16::from_le_bytes(large[56..58].try_into().unwrap()));
    let headers = (0..count).map(|index| table + 56 * index);
    let is_data = |at: &usize| large[*at] == 1 && large[*at + 4] == 6;
    let data = headers.clone().find(is_data).unwrap();
    large[data + 40..data + 48].copy_from_slice(&(32u64 << 20).to_le_bytes());
    let image = Some(host().load(&large).unwrap());
    let small = Settings { image: image.clone(), ..Settings::new(32 << 20) };
    match host().create(Target::Process, &small) {
        Err(error @ CreateError::SmallMemory { .. }) => {
            assert!(error.to_string().contains("give the box more"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    host().create(Target::Process, &Settings { image, ..Settings::new(64 << 20) }).unwrap();
}
