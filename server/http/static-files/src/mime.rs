//! Content types by file name extension. The table is our own because the guessing crates have three
//! dependencies, no charset, and types that browsers have since renamed.

use std::collections::BTreeMap;

/// The type of unknown files, which browsers save and never render.
const UNKNOWN: &str = "application/octet-stream";

/// The length of the longest extension in the table.
const EXTENSION_MAX: usize = 11;

/// The content type of a file: the configured one, else the table's with `charset=utf-8` for text,
/// else [`UNKNOWN`].
pub(crate) fn of_name(name: &[u8], overrides: &BTreeMap<String, String>) -> String {
    let extension = extension(name).and_then(|bytes| std::str::from_utf8(bytes).ok());
    let configured = extension.and_then(|extension| overrides.get(&extension.to_ascii_lowercase()));
    if let Some(content_type) = configured {
        return content_type.clone();
    }
    match built_in(name) {
        Some(text) if text.starts_with("text/") => format!("{text}; charset=utf-8"),
        Some(other) => other.to_owned(),
        None => UNKNOWN.to_owned(),
    }
}

/// The table's type for a name, without a charset.
pub(crate) fn built_in(name: &[u8]) -> Option<&'static str> {
    let extension = extension(name)?;
    let mut lower = [0; EXTENSION_MAX];
    let lower = lower.get_mut(..extension.len())?;
    lower.copy_from_slice(extension);
    lower.make_ascii_lowercase();
    let lower = std::str::from_utf8(lower).ok()?;
    let index = TABLE.binary_search_by_key(&lower, |&(extension, _)| extension).ok()?;
    Some(TABLE[index].1)
}

/// The text after the last dot; the name of a dot file is not an extension.
fn extension(name: &[u8]) -> Option<&[u8]> {
    let dot = memchr::memrchr(b'.', name)?;
    (dot > 0 && dot + 1 < name.len()).then(|| &name[dot + 1..])
}

/// Sorted by extension.
#[rustfmt::skip]
const TABLE: &[(&str, &str)] = &[
    ("3gp", "video/3gpp"),
    ("7z", "application/x-7z-compressed"),
    ("aac", "audio/aac"),
    ("ai", "application/postscript"),
    ("apk", "application/vnd.android.package-archive"),
    ("apng", "image/apng"),
    ("asc", "text/plain"),
    ("atom", "application/atom+xml"),
    ("avi", "video/x-msvideo"),
    ("avif", "image/avif"),
    ("bmp", "image/bmp"),
    ("br", "application/octet-stream"),
    ("bz2", "application/x-bzip2"),
    ("cer", "application/pkix-cert"),
    ("conf", "text/plain"),
    ("crt", "application/x-x509-ca-cert"),
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("cur", "image/x-icon"),
    ("deb", "application/vnd.debian.binary-package"),
    ("dmg", "application/x-apple-diskimage"),
    ("doc", "application/msword"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("dtd", "application/xml-dtd"),
    ("ejs", "text/plain"),
    ("eot", "application/vnd.ms-fontobject"),
    ("eps", "application/postscript"),
    ("epub", "application/epub+zip"),
    ("exe", "application/vnd.microsoft.portable-executable"),
    ("flac", "audio/flac"),
    ("flv", "video/x-flv"),
    ("geojson", "application/geo+json"),
    ("gif", "image/gif"),
    ("glb", "model/gltf-binary"),
    ("gltf", "model/gltf+json"),
    ("gpx", "application/gpx+xml"),
    ("gz", "application/gzip"),
    ("heic", "image/heic"),
    ("heif", "image/heif"),
    ("htc", "text/x-component"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("ico", "image/x-icon"),
    ("ics", "text/calendar"),
    ("ini", "text/plain"),
    ("iso", "application/x-iso9660-image"),
    ("jar", "application/java-archive"),
    ("jfif", "image/jpeg"),
    ("jpe", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript"),
    ("json", "application/json"),
    ("jsonld", "application/ld+json"),
    ("jxl", "image/jxl"),
    ("kml", "application/vnd.google-earth.kml+xml"),
    ("kmz", "application/vnd.google-earth.kmz"),
    ("less", "text/plain"),
    ("log", "text/plain"),
    ("m3u8", "application/vnd.apple.mpegurl"),
    ("m4a", "audio/mp4"),
    ("m4v", "video/x-m4v"),
    ("map", "application/json"),
    ("markdown", "text/markdown"),
    ("md", "text/markdown"),
    ("mid", "audio/midi"),
    ("midi", "audio/midi"),
    ("mjs", "text/javascript"),
    ("mkv", "video/x-matroska"),
    ("mml", "text/mathml"),
    ("mov", "video/quicktime"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("mpd", "application/dash+xml"),
    ("mpeg", "video/mpeg"),
    ("mpg", "video/mpeg"),
    ("odg", "application/vnd.oasis.opendocument.graphics"),
    ("odp", "application/vnd.oasis.opendocument.presentation"),
    ("ods", "application/vnd.oasis.opendocument.spreadsheet"),
    ("odt", "application/vnd.oasis.opendocument.text"),
    ("oga", "audio/ogg"),
    ("ogg", "audio/ogg"),
    ("ogv", "video/ogg"),
    ("opus", "audio/opus"),
    ("otf", "font/otf"),
    ("pdf", "application/pdf"),
    ("pem", "application/x-x509-ca-cert"),
    ("png", "image/png"),
    ("ppt", "application/vnd.ms-powerpoint"),
    ("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    ("ps", "application/postscript"),
    ("psd", "image/vnd.adobe.photoshop"),
    ("rar", "application/vnd.rar"),
    ("rdf", "application/rdf+xml"),
    ("rpm", "application/x-rpm"),
    ("rss", "application/rss+xml"),
    ("rtf", "application/rtf"),
    ("scss", "text/plain"),
    ("sh", "text/plain"),
    ("sql", "application/sql"),
    ("srt", "text/plain"),
    ("svg", "image/svg+xml"),
    ("swf", "application/x-shockwave-flash"),
    ("tar", "application/x-tar"),
    ("text", "text/plain"),
    ("tgz", "application/gzip"),
    ("tif", "image/tiff"),
    ("tiff", "image/tiff"),
    ("toml", "application/toml"),
    ("ts", "video/mp2t"),
    ("ttc", "font/collection"),
    ("ttf", "font/ttf"),
    ("txt", "text/plain"),
    ("vcard", "text/vcard"),
    ("vcf", "text/vcard"),
    ("vtt", "text/vtt"),
    ("wasm", "application/wasm"),
    ("wav", "audio/wav"),
    ("weba", "audio/webm"),
    ("webm", "video/webm"),
    ("webmanifest", "application/manifest+json"),
    ("webp", "image/webp"),
    ("wmv", "video/x-ms-wmv"),
    ("woff", "font/woff"),
    ("woff2", "font/woff2"),
    ("xhtml", "application/xhtml+xml"),
    ("xls", "application/vnd.ms-excel"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("xml", "application/xml"),
    ("xpi", "application/x-xpinstall"),
    ("xsd", "application/xml"),
    ("xsl", "application/xslt+xml"),
    ("xslt", "application/xslt+xml"),
    ("xz", "application/x-xz"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("zip", "application/zip"),
    ("zst", "application/zstd"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(name: &str) -> String {
        of_name(name.as_bytes(), &BTreeMap::new())
    }

    #[test]
    fn the_table_is_sorted_and_its_keys_fit() {
        assert!(TABLE.windows(2).all(|pair| pair[0].0 < pair[1].0));
        let longest = TABLE.iter().map(|(extension, _)| extension.len()).max();
        assert_eq!(longest, Some(EXTENSION_MAX));
    }

    #[test]
    fn types_are_found_by_the_last_extension_in_any_case() {
        for (name, expected) in [
            ("index.html", "text/html; charset=utf-8"),
            ("a.min.JS", "text/javascript; charset=utf-8"),
            ("style.css", "text/css; charset=utf-8"),
            ("a.json", "application/json"),
            ("a.svg", "image/svg+xml"),
            ("a.Jpg", "image/jpeg"),
            ("a.tar.gz", "application/gzip"),
            ("app.webmanifest", "application/manifest+json"),
            ("README", UNKNOWN),
            (".html", UNKNOWN),
            ("a.", UNKNOWN),
            ("a.unknownextension", UNKNOWN),
            ("a.\u{fc}", UNKNOWN),
        ] {
            assert_eq!(plain(name), expected, "{name}");
        }
    }

    #[test]
    fn an_override_is_used_verbatim() {
        let overrides = BTreeMap::from([("html".to_owned(), "text/html".to_owned())]);
        assert_eq!(of_name(b"a.HTML", &overrides), "text/html");
    }
}
