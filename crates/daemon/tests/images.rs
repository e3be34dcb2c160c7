//! Images that users give, over the daemon's sockets.

mod support;

use api::client::Client;
use api::operation as op;
use api::{
    ApplyQuery, BoxState, CreateBox, ErrorCode, ImageDigest, ImageSource, Quota, RemoveQuery, Right, Stack,
};
use daemon::NewUser;
use std::io::Read;
use support::{Daemon, Folder, code, process, until, with_tcp};

/// Not a test: the daemon that the other tests start.
#[test]
fn run_as_daemon() {
    support::run_if_child();
}

/// A folder of a daemon whose boxes run configurations.
fn engine(name: &str) -> Folder {
    let folder = Folder::new(name);
    std::fs::write(folder.file("engine"), "").unwrap();
    folder
}

/// Uploads an image.
fn upload(client: &Client, image: &[u8]) -> ImageSource {
    client.send(&op::UPLOAD, &["image"], image).unwrap();
    ImageSource::Upload("image".parse().unwrap())
}

/// A box that runs an image; its configuration is a command of the probe.
fn probe(name: &str, image: ImageSource) -> CreateBox {
    CreateBox { image: Some(image), ..process(name, "mirror", &[]) }
}

fn remove(client: &Client, name: &str) {
    client.call(&op::REMOVE_BOX, &[name], &RemoveQuery::FORCE, &()).unwrap();
}

fn image_of(client: &Client, digest: &ImageDigest) -> Result<Vec<u8>, api::client::ClientError> {
    let mut contents = Vec::new();
    client.ask(&op::IMAGE, &[&digest.to_string()])?.read_to_end(&mut contents).unwrap();
    Ok(contents)
}

#[test]
fn a_box_runs_the_image_of_a_user() {
    let folder = engine("image");
    let daemon = Daemon::start(&folder.0);
    let client = daemon.client();
    // What the built-in image rejects, this one accepts.
    assert_eq!(code(client.send(&op::CREATE_BOX, &[], &process("one", "mirror", &[]))), ErrorCode::Refused);
    let image = upload(&client, image::PROBE);
    let detail = client.send(&op::CREATE_BOX, &[], &probe("one", image)).unwrap();
    let digest = detail.image.unwrap();
    assert_eq!(detail.status.state, BoxState::Running);
    // The upload is gone, and the daemon has the image: another box needs no upload.
    assert_eq!(code(client.ask(&op::REMOVE_UPLOAD, &["image"])), ErrorCode::NotFound);
    client.send(&op::CREATE_BOX, &[], &probe("two", ImageSource::Digest(digest))).unwrap();
    assert!(image_of(&client, &digest).unwrap() == image::PROBE);
    // A configuration is checked by the image too.
    let install = |text: &str| api::Install {
        configuration: text.into(),
        source: None,
        files: Vec::new(),
        uploads: Vec::new(),
    };
    client.send(&op::INSTALL, &["two", "main"], &install("drop")).unwrap();
    let refused = client.send(&op::INSTALL, &["two", "main"], &install("Idle -> Discard;"));
    assert_eq!(code(refused), ErrorCode::Refused);
    // The image outlives the daemon and the fabric.
    drop(daemon);
    let daemon = Daemon::start(&folder.0);
    let client = daemon.client();
    for name in ["one", "two"] {
        let detail = client.ask(&op::SHOW_BOX, &[name]).unwrap();
        assert_eq!((detail.image, detail.status.state), (Some(digest), BoxState::Running), "{name}");
    }
    remove(&client, "one");
    assert!(image_of(&client, &digest).unwrap() == image::PROBE);
    remove(&client, "two");
    until("the image is removed", || image_of(&client, &digest).is_err());
    let again = client.send(&op::CREATE_BOX, &[], &probe("one", ImageSource::Digest(digest)));
    assert_eq!(code(again), ErrorCode::NotFound);
}

#[test]
fn what_is_no_image_is_not_stored() {
    let folder = engine("image-bad");
    let daemon = Daemon::start(&folder.0);
    let client = daemon.client();
    let image = upload(&client, b"#!/bin/sh\n");
    let error = client.send(&op::CREATE_BOX, &[], &probe("one", image)).unwrap_err();
    assert!(error.to_string().contains("not a 64-bit x86 ELF program"), "{error}");
    assert_eq!(code(Err::<(), _>(error)), ErrorCode::Refused);
    // The upload stays for another attempt; the image does not.
    client.ask(&op::REMOVE_UPLOAD, &["image"]).unwrap();
    let unknown = ImageSource::Upload("nowhere".parse().unwrap());
    assert_eq!(code(client.send(&op::CREATE_BOX, &[], &probe("one", unknown))), ErrorCode::NotFound);
    assert!(client.ask(&op::LIST_BOXES, &[]).unwrap().is_empty());
}

#[test]
fn a_stack_replaces_boxes_with_another_image() {
    let folder = engine("image-stack");
    let daemon = Daemon::start(&folder.0);
    let client = daemon.client();
    let stack = |image: Option<ImageSource>, text: &str| {
        let boxes = vec![CreateBox { image, ..process("one", text, &[]) }];
        Stack { boxes, ..Stack::default() }
    };
    let apply = |stack: &Stack| client.call(&op::APPLY_STACK, &["edge"], &ApplyQuery::default(), stack);
    apply(&stack(None, "Idle -> Discard;")).unwrap();
    let image = upload(&client, image::PROBE);
    let wanted = stack(Some(image), "mirror");
    let changes = client.send(&op::DIFF_STACK, &["edge"], &wanted).unwrap().changes;
    assert_eq!(changes.len(), 1);
    assert!(changes[0].detail.contains("image built-in -> sha256:"), "{changes:?}");
    // A comparison keeps neither the upload nor the image.
    apply(&wanted).unwrap();
    let exported = client.ask(&op::EXPORT_STACK, &["edge"]).unwrap();
    let digest = *exported.boxes[0].image_digest().unwrap();
    assert_eq!(client.ask(&op::SHOW_BOX, &["one"]).unwrap().image, Some(digest));
    // The exported stack is the one that there is.
    assert_eq!(client.send(&op::DIFF_STACK, &["edge"], &exported).unwrap().changes, []);
    // One that waits for its confirmation can be rolled back to the image.
    let query = ApplyQuery { confirm_within: Some(600), force: false };
    client.call(&op::APPLY_STACK, &["edge"], &query, &stack(None, "Idle -> Discard;")).unwrap();
    assert_eq!(client.ask(&op::SHOW_BOX, &["one"]).unwrap().image, None);
    client.ask(&op::ROLL_BACK_STACK, &["edge"]).unwrap();
    assert_eq!(client.ask(&op::SHOW_BOX, &["one"]).unwrap().image, Some(digest));
    apply(&Stack::default()).unwrap();
    until("the image is removed", || image_of(&client, &digest).is_err());
}

/// For a user there are only the images of the own boxes.
#[test]
fn the_images_of_other_owners_do_not_exist() {
    let folder = engine("image-owners");
    let tokens = folder.file("tokens");
    let user = |name: &str| NewUser {
        name: name.parse().unwrap(),
        owner: name.parse().unwrap(),
        rights: Right::OF_TOKENS.into(),
        quota: Quota::default(),
    };
    let [alice, bob] = ["alice", "bob"].map(|name| daemon::add_user(&tokens, &user(name)).unwrap());
    let (daemon, with) = with_tcp(&folder);
    let (alice, bob) = (&with(Some(&alice)), &with(Some(&bob)));
    let image = upload(alice, image::PROBE);
    let digest = alice.send(&op::CREATE_BOX, &[], &probe("one", image)).unwrap().image.unwrap();
    assert!(image_of(alice, &digest).unwrap() == image::PROBE);
    assert_eq!(code(image_of(bob, &digest)), ErrorCode::NotFound);
    let stolen = probe("two", ImageSource::Digest(digest));
    assert_eq!(code(bob.send(&op::CREATE_BOX, &[], &stolen)), ErrorCode::NotFound);
    // Who has the same file may run it, and both share what is stored.
    let image = upload(bob, image::PROBE);
    bob.send(&op::CREATE_BOX, &[], &probe("two", image)).unwrap();
    assert!(image_of(bob, &digest).unwrap() == image::PROBE);
    remove(alice, "one");
    assert_eq!(code(image_of(alice, &digest)), ErrorCode::NotFound);
    drop(daemon);
}
