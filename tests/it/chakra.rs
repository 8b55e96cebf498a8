//! Chakra's messages, as the description of the format has them: what our reader and writer are held against.

use prost::Message;

/// A list of true and false.
#[derive(Clone, PartialEq, Message)]
pub struct Flags {
    #[prost(bool, repeated, tag = "1")]
    pub values: Vec<bool>,
}

/// An attribute of a node.
#[derive(Clone, PartialEq, Message)]
pub struct Attribute {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub comment: String,
    #[prost(oneof = "Value", tags = "3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 28, 29, 31")]
    pub value: Option<Value>,
}

/// The value of an attribute.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Value {
    #[prost(double, tag = "3")]
    Double(f64),
    #[prost(float, tag = "5")]
    Float(f32),
    #[prost(int32, tag = "7")]
    Int32(i32),
    #[prost(int64, tag = "9")]
    Int64(i64),
    #[prost(uint32, tag = "11")]
    Uint32(u32),
    #[prost(uint64, tag = "13")]
    Uint64(u64),
    #[prost(sint32, tag = "15")]
    Sint32(i32),
    #[prost(sint64, tag = "17")]
    Sint64(i64),
    #[prost(fixed32, tag = "19")]
    Fixed32(u32),
    #[prost(fixed64, tag = "21")]
    Fixed64(u64),
    #[prost(sfixed32, tag = "23")]
    Sfixed32(i32),
    #[prost(sfixed64, tag = "25")]
    Sfixed64(i64),
    #[prost(bool, tag = "27")]
    Bool(bool),
    #[prost(message, tag = "28")]
    Bools(Flags),
    #[prost(string, tag = "29")]
    Text(String),
    #[prost(bytes, tag = "31")]
    Bytes(Vec<u8>),
}

/// What a trace begins with.
#[derive(Clone, PartialEq, Message)]
pub struct Metadata {
    #[prost(string, tag = "1")]
    pub version: String,
}

/// A node.
#[derive(Clone, PartialEq, Message)]
pub struct Node {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(int32, tag = "3")]
    pub kind: i32,
    #[prost(uint64, repeated, packed = "false", tag = "4")]
    pub ctrl_deps: Vec<u64>,
    #[prost(uint64, repeated, tag = "5")]
    pub data_deps: Vec<u64>,
    #[prost(uint64, tag = "6")]
    pub start_time_micros: u64,
    #[prost(uint64, tag = "7")]
    pub duration_micros: u64,
    #[prost(message, repeated, tag = "10")]
    pub attributes: Vec<Attribute>,
}

/// The kinds of nodes.
pub const LOAD: i32 = 2;
pub const STORE: i32 = 3;
pub const COMPUTE: i32 = 4;
pub const SEND: i32 = 5;
pub const RECEIVE: i32 = 6;
pub const COLLECTIVE: i32 = 7;

/// A node with its attributes.
pub fn node(id: u64, kind: i32, after: &[u64], attributes: &[(&str, Value)]) -> Node {
    let attribute = |(name, value): &(&str, Value)| Attribute {
        name: (*name).to_owned(),
        comment: String::new(),
        value: Some(value.clone()),
    };
    Node {
        id,
        name: format!("n{id}"),
        kind,
        data_deps: after.to_vec(),
        attributes: attributes.iter().map(attribute).collect(),
        ..Node::default()
    }
}

/// A trace of nodes.
pub fn trace(nodes: &[Node]) -> Vec<u8> {
    let mut bytes = Metadata { version: "0.0.4".to_owned() }.encode_length_delimited_to_vec();
    for node in nodes {
        bytes.extend(node.encode_length_delimited_to_vec());
    }
    bytes
}

/// The nodes of a trace.
pub fn nodes(mut bytes: &[u8]) -> Vec<Node> {
    Metadata::decode_length_delimited(&mut bytes).expect("a record about the whole");
    let mut nodes = Vec::new();
    while !bytes.is_empty() {
        nodes.push(Node::decode_length_delimited(&mut bytes).expect("a node"));
    }
    nodes
}
