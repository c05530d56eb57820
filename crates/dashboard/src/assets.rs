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

const PAGE: Asset = Asset {
    content_type: "text/html; charset=utf-8",
    bytes: include_bytes!("../assets/dashboard.html"),
};
const STYLE: Asset = Asset {
    content_type: "text/css; charset=utf-8",
    bytes: include_bytes!("../assets/dashboard.css"),
};
const SCRIPT: Asset = Asset {
    content_type: "text/javascript; charset=utf-8",
    bytes: include_bytes!("../assets/dashboard.js"),
};

/// The file of a path.
pub fn asset(path: &str) -> Option<Asset> {
    match path {
        "/" | "/dashboard" => Some(PAGE),
        "/dashboard/style.css" => Some(STYLE),
        "/dashboard/script.js" => Some(SCRIPT),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small_and_needs_no_other_server() {
        let all = [PAGE, STYLE, SCRIPT];
        let bytes: usize = all.iter().map(|asset| asset.bytes.len()).sum();
        assert!(bytes < 60 << 10, "{bytes}");
        for asset in all {
            let text = std::str::from_utf8(asset.bytes).expect("a text");
            // The namespace of SVG is a name.
            let text = text.replace("http://www.w3.org/2000/svg", "");
            for foreign in ["http:", "https:", "//cdn", "@import", "url("] {
                assert!(!text.contains(foreign), "{foreign} in {}", asset.content_type);
            }
        }
    }

    #[test]
    fn no_text_of_the_page_becomes_markup() {
        let script = std::str::from_utf8(SCRIPT.bytes).expect("a text");
        for sink in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
            assert!(!script.contains(sink), "{sink}");
        }
        let page = std::str::from_utf8(PAGE.bytes).expect("a text");
        assert!(!page.contains(" style=") && !page.contains(" onclick="));
        assert_eq!(page.matches("<script").count(), 1);
    }
}
