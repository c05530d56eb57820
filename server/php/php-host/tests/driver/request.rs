//! Requests of the tests.

use super::fixtures;
use outboard_ring::request::{self, FIELD_COUNT, Field, Fixed, RequestParts};
use std::path::{Path, PathBuf};

/// A request, with the values that a test sets.
#[derive(Clone)]
pub struct RequestSpec {
    pub root: PathBuf,
    pub script: String,
    pub path_info: String,
    pub method: String,
    pub query: String,
    pub content_type: String,
    pub body: Option<Vec<u8>>,
    pub headers: Vec<(String, String)>,
    pub params: Vec<(String, String)>,
    pub scheme: String,
}

pub fn get(script: &str) -> RequestSpec {
    RequestSpec {
        root: fixtures(),
        script: script.into(),
        path_info: String::new(),
        method: "GET".into(),
        query: String::new(),
        content_type: String::new(),
        body: None,
        headers: vec![("Host".into(), "example.test".into())],
        params: Vec::new(),
        scheme: "http".into(),
    }
}

pub fn post(script: &str, content_type: &str, body: impl Into<Vec<u8>>) -> RequestSpec {
    let body = body.into();
    let request = get(script).header("Content-Type", content_type);
    RequestSpec {
        method: "POST".into(),
        content_type: content_type.into(),
        body: Some(body),
        ..request
    }
}

impl RequestSpec {
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub fn param(mut self, name: &str, value: &str) -> Self {
        self.params.push((name.into(), value.into()));
        self
    }

    pub fn query(self, query: &str) -> Self {
        Self { query: query.into(), ..self }
    }

    pub fn method(self, method: &str) -> Self {
        Self { method: method.into(), ..self }
    }

    pub fn path_info(self, path_info: &str) -> Self {
        Self { path_info: path_info.into(), ..self }
    }

    pub fn root(self, root: &Path) -> Self {
        Self { root: root.into(), ..self }
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        let root = self.root.to_str().unwrap();
        let script_name = format!("/{}", self.script);
        let file = format!("{root}{script_name}");
        let document_uri = format!("{script_name}{}", self.path_info);
        let question = if self.query.is_empty() { "" } else { "?" };
        let uri = format!("{document_uri}{question}{}", self.query);
        let mut fields: [&[u8]; FIELD_COUNT] = [b""; FIELD_COUNT];
        for (field, value) in [
            (Field::Method, self.method.as_str()),
            (Field::Uri, &uri),
            (Field::Query, &self.query),
            (Field::ScriptFilename, &file),
            (Field::ScriptName, &script_name),
            (Field::PathInfo, &self.path_info),
            (Field::DocumentRoot, root),
            (Field::DocumentUri, &document_uri),
            (Field::Protocol, "HTTP/1.1"),
            (Field::ContentType, &self.content_type),
            (Field::RemoteAddr, "192.0.2.7"),
            (Field::ServerAddr, "192.0.2.1"),
            (Field::ServerName, "example.test"),
            (Field::Scheme, &self.scheme),
            (Field::RequestId, "r-1"),
        ] {
            fields[field as usize] = value.as_bytes();
        }
        let fixed = Fixed {
            content_length: self.body.as_ref().map(|body| body.len() as u64),
            received_us: 1_700_000_000_250_000,
            remote_port: 40_000,
            server_port: 8080,
            ..Fixed::default()
        };
        request::encode(
            RequestParts {
                fixed,
                fields,
                headers: self.headers.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes())),
                params: self.params.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes())),
            },
            out,
        );
    }
}
