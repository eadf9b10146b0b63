//! Holds `proto/envoy.binpb` to its sources: the descriptor set inside the locked envoy-types crate
//! and our own `.proto` files. `UPDATE_DESCRIPTORS=1` rewrites it.

use prost::Message;
use prost::bytes::Buf;
use prost::encoding::{DecodeContext, decode_key, skip_field};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Our own declarations, below `proto/`.
const OURS: [&str; 2] = ["udpa/type/v1/typed_struct.proto", "xds/type/v3/typed_struct.proto"];

/// `FileDescriptorProto.source_code_info`: comments and positions, four fifths of the original.
const SOURCE_CODE_INFO: u32 = 9;

/// A `FileDescriptorSet` whose files stay bytes, so that no custom option gets lost.
#[derive(Clone, PartialEq, Message)]
struct RawSet {
    #[prost(bytes = "vec", repeated, tag = "1")]
    file: Vec<Vec<u8>>,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn cargo(args: &[&str]) -> Vec<u8> {
    let output = Command::new(env!("CARGO")).args(args).current_dir(root()).output();
    let output = output.expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Where the locked envoy-types lies. Only this host's dependencies are asked for, because those of
/// other platforms need not have been downloaded.
fn envoy_types() -> PathBuf {
    let version = String::from_utf8(cargo(&["-vV"])).expect("text");
    let host = version.lines().find_map(|l| l.strip_prefix("host: ")).expect("a host line");
    let metadata = ["metadata", "--format-version=1", "--locked", "--offline"];
    let metadata = cargo(&[&metadata[..], &["--filter-platform", host]].concat());
    let metadata: serde_json::Value = serde_json::from_slice(&metadata).expect("JSON");
    let packages = metadata["packages"].as_array().expect("a list of packages");
    let package = packages.iter().find(|p| p["name"] == "envoy-types").expect("a dependency");
    let manifest = package["manifest_path"].as_str().expect("a path");
    Path::new(manifest).parent().expect("a directory").to_owned()
}

fn without_source_code_info(file: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(file.len() / 4);
    let mut rest = file;
    while rest.has_remaining() {
        let field = rest;
        let (number, wire_type) = decode_key(&mut rest).expect("a field");
        skip_field(wire_type, number, &mut rest, DecodeContext::default()).expect("a value");
        if number != SOURCE_CODE_INFO {
            kept.extend_from_slice(&field[..field.len() - rest.len()]);
        }
    }
    kept
}

fn generate() -> Vec<u8> {
    let types = envoy_types().join("src/generated/types.bin");
    let types = std::fs::read(&types).unwrap_or_else(|e| panic!("{}: {e}", types.display()));
    let mut set = RawSet::decode(types.as_slice()).expect("envoy-types ships a descriptor set");
    for file in &mut set.file {
        *file = without_source_code_info(file);
    }
    let mut compiler = protox::Compiler::new([root().join("proto")]).expect("proto/ exists");
    compiler.include_imports(false).include_source_info(false);
    compiler.open_files(OURS).expect("our declarations compile");
    let ours = RawSet::decode(compiler.encode_file_descriptor_set().as_slice()).expect("a set");
    assert_eq!(ours.file.len(), OURS.len());
    set.file.extend(ours.file);
    set.encode_to_vec()
}

#[test]
fn the_checked_in_set_is_what_its_sources_give() {
    let path = root().join("proto/envoy.binpb");
    let generated = generate();
    if std::env::var_os("UPDATE_DESCRIPTORS").is_some() {
        std::fs::write(&path, &generated).expect("proto/envoy.binpb can be written");
    }
    let checked_in = std::fs::read(&path).expect("proto/envoy.binpb can be read");
    // Not assert_eq: it would print a megabyte of bytes.
    assert!(
        checked_in == generated,
        "proto/envoy.binpb is out of date; run: UPDATE_DESCRIPTORS=1 cargo test --test descriptors"
    );
}

#[test]
fn the_set_describes_envoy_and_what_envoy_types_lacks() {
    let pool = pilotfish::xds::descriptors::pool();
    for name in [
        "envoy.config.listener.v3.Listener",
        "google.protobuf.FileDescriptorSet",
        "validate.FieldRules",
        "udpa.type.v1.TypedStruct",
        "xds.type.v3.TypedStruct",
    ] {
        assert!(pool.get_message_by_name(name).is_some(), "{name}");
    }
    assert!(pool.get_extension_by_name("validate.rules").is_some());
}

#[test]
fn every_declaration_of_ours_is_compiled() {
    let mut found = Vec::new();
    let mut open = vec![root().join("proto")];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "proto") {
                let name = path.strip_prefix(root().join("proto")).expect("below proto");
                found.push(name.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    assert_eq!(found, OURS);
}
