//! [`Asset`]: the files of the page, which are part of the program.
//!
//! Invariants: nothing in them refers to another server, and all URLs are relative, so that the page works
//! behind a proxy that serves it below a path.

/// A file of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asset {
    /// Its content type.
    pub content_type: &'static str,
    /// Its content.
    pub bytes: &'static [u8],
}

/// The header fields of all that belongs to the page. Scripts, styles and data come from this server alone,
/// and no other page may embed or read them.
pub const HEADERS: [(&str, &str); 7] = [
    (
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
         trusted-types 'none'",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
];

macro_rules! asset {
    ($content_type:literal, $file:literal) => {
        Asset { content_type: $content_type, bytes: include_bytes!(concat!("../assets/", $file)) }
    };
}

/// The files by their paths. Scripts are modules, which import each other by name.
const ASSETS: [(&str, Asset); 10] = [
    ("/", asset!("text/html; charset=utf-8", "dashboard.html")),
    ("/dashboard/dashboard.css", asset!("text/css; charset=utf-8", "dashboard.css")),
    ("/dashboard/dashboard.js", asset!("text/javascript; charset=utf-8", "dashboard.js")),
    ("/dashboard/chart.js", asset!("text/javascript; charset=utf-8", "chart.js")),
    ("/dashboard/connection.js", asset!("text/javascript; charset=utf-8", "connection.js")),
    ("/dashboard/elements.js", asset!("text/javascript; charset=utf-8", "elements.js")),
    ("/dashboard/figures.js", asset!("text/javascript; charset=utf-8", "figures.js")),
    ("/dashboard/flame.js", asset!("text/javascript; charset=utf-8", "flame.js")),
    ("/dashboard/sections.js", asset!("text/javascript; charset=utf-8", "sections.js")),
    ("/dashboard/text.js", asset!("text/javascript; charset=utf-8", "text.js")),
];

/// The file of a path.
pub fn asset(path: &str) -> Option<Asset> {
    let path = if path == "/dashboard" { "/" } else { path };
    ASSETS.iter().find(|(own, _)| *own == path).map(|(_, asset)| *asset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small_and_needs_no_other_server() {
        let bytes: usize = ASSETS.iter().map(|(_, asset)| asset.bytes.len()).sum();
        assert!(bytes < 60 << 10, "{bytes}");
        for (_, asset) in ASSETS {
            let text = std::str::from_utf8(asset.bytes).expect("a text");
            // The namespace of SVG is a name.
            let text = text.replace("http://www.w3.org/2000/svg", "");
            for foreign in ["http:", "https:", "//cdn", "@import", "url("] {
                assert!(!text.contains(foreign), "{foreign} in {}", asset.content_type);
            }
        }
    }

    #[test]
    fn every_module_that_is_imported_is_served() {
        for (path, asset) in ASSETS.iter().filter(|(path, _)| path.ends_with(".js")) {
            let text = std::str::from_utf8(asset.bytes).expect("a text");
            for import in text.lines().filter_map(|line| line.split_once(" from './")) {
                let name = import.1.trim_end_matches("';");
                let is_served = ASSETS.iter().any(|(own, _)| *own == format!("/dashboard/{name}"));
                assert!(is_served, "{name}, which {path} imports");
            }
        }
    }

    #[test]
    fn no_text_of_the_page_becomes_markup() {
        let text = |asset: Asset| std::str::from_utf8(asset.bytes).expect("a text");
        for (path, asset) in ASSETS {
            for sink in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("]
            {
                assert!(!text(asset).contains(sink), "{sink} in {path}");
            }
        }
        let page = text(ASSETS[0].1);
        assert!(!page.contains(" style=") && !page.contains(" onclick="));
        assert_eq!(page.matches("<script").count(), 1);
    }
}
