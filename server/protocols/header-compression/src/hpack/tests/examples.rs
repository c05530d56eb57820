//! The examples of RFC 7541 appendix C.2 to C.6, as data.

/// A block of an example.
pub(super) struct Example {
    pub(super) hex: &'static str,
    pub(super) fields: &'static [(&'static str, &'static str)],
    /// The dynamic table afterwards.
    pub(super) table_entries: usize,
    pub(super) table_bytes: usize,
}

/// C.2, each for a new decoder.
pub(super) const SINGLE_FIELDS: [Example; 4] = [
    Example {
        hex: "400a637573746f6d2d6b65790d637573 \
              746f6d2d686561646572",
        fields: &[("custom-key", "custom-header")],
        table_entries: 1,
        table_bytes: 55,
    },
    Example {
        hex: "040c2f73616d706c652f70617468",
        fields: &[(":path", "/sample/path")],
        table_entries: 0,
        table_bytes: 0,
    },
    Example {
        hex: "100870617373776f7264067365637265 \
              74",
        fields: &[("password", "secret")],
        table_entries: 0,
        table_bytes: 0,
    },
    Example { hex: "82", fields: &[(":method", "GET")], table_entries: 0, table_bytes: 0 },
];

/// C.3.
pub(super) const REQUESTS: [Example; 3] = [
    Example {
        hex: "828684410f7777772e6578616d706c65 \
              2e636f6d",
        fields: &[
            (":method", "GET"),
            (":scheme", "http"),
            (":path", "/"),
            (":authority", "www.example.com"),
        ],
        table_entries: 1,
        table_bytes: 57,
    },
    Example {
        hex: "828684be58086e6f2d6361636865",
        fields: &[
            (":method", "GET"),
            (":scheme", "http"),
            (":path", "/"),
            (":authority", "www.example.com"),
            ("cache-control", "no-cache"),
        ],
        table_entries: 2,
        table_bytes: 110,
    },
    Example {
        hex: "828785bf400a637573746f6d2d6b6579 \
              0c637573746f6d2d76616c7565",
        fields: &[
            (":method", "GET"),
            (":scheme", "https"),
            (":path", "/index.html"),
            (":authority", "www.example.com"),
            ("custom-key", "custom-value"),
        ],
        table_entries: 3,
        table_bytes: 164,
    },
];

/// C.4.
pub(super) const REQUESTS_IN_HUFFMAN_CODE: [Example; 3] = [
    Example {
        hex: "828684418cf1e3c2e5f23a6ba0ab90f4 \
              ff",
        fields: &[
            (":method", "GET"),
            (":scheme", "http"),
            (":path", "/"),
            (":authority", "www.example.com"),
        ],
        table_entries: 1,
        table_bytes: 57,
    },
    Example {
        hex: "828684be5886a8eb10649cbf",
        fields: &[
            (":method", "GET"),
            (":scheme", "http"),
            (":path", "/"),
            (":authority", "www.example.com"),
            ("cache-control", "no-cache"),
        ],
        table_entries: 2,
        table_bytes: 110,
    },
    Example {
        hex: "828785bf408825a849e95ba97d7f8925 \
              a849e95bb8e8b4bf",
        fields: &[
            (":method", "GET"),
            (":scheme", "https"),
            (":path", "/index.html"),
            (":authority", "www.example.com"),
            ("custom-key", "custom-value"),
        ],
        table_entries: 3,
        table_bytes: 164,
    },
];

/// C.5, with a table of 256 bytes.
pub(super) const RESPONSES: [Example; 3] = [
    Example {
        hex: "4803333032580770726976617465611d \
              4d6f6e2c203231204f63742032303133 \
              2032303a31333a323120474d546e1768 \
              747470733a2f2f7777772e6578616d70 \
              6c652e636f6d",
        fields: &[
            (":status", "302"),
            ("cache-control", "private"),
            ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
            ("location", "https://www.example.com"),
        ],
        table_entries: 4,
        table_bytes: 222,
    },
    Example {
        hex: "4803333037c1c0bf",
        fields: &[
            (":status", "307"),
            ("cache-control", "private"),
            ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
            ("location", "https://www.example.com"),
        ],
        table_entries: 4,
        table_bytes: 222,
    },
    Example {
        hex: "88c1611d4d6f6e2c203231204f637420 \
              323031332032303a31333a323220474d \
              54c05a04677a69707738666f6f3d4153 \
              444a4b48514b425a584f5157454f5049 \
              5541585157454f49553b206d61782d61 \
              67653d333630303b2076657273696f6e \
              3d31",
        fields: &[
            (":status", "200"),
            ("cache-control", "private"),
            ("date", "Mon, 21 Oct 2013 20:13:22 GMT"),
            ("location", "https://www.example.com"),
            ("content-encoding", "gzip"),
            ("set-cookie", "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"),
        ],
        table_entries: 3,
        table_bytes: 215,
    },
];

/// C.6, with a table of 256 bytes.
pub(super) const RESPONSES_IN_HUFFMAN_CODE: [Example; 3] = [
    Example {
        hex: "488264025885aec3771a4b6196d07abe \
              941054d444a8200595040b8166e082a6 \
              2d1bff6e919d29ad171863c78f0b97c8 \
              e9ae82ae43d3",
        fields: &[
            (":status", "302"),
            ("cache-control", "private"),
            ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
            ("location", "https://www.example.com"),
        ],
        table_entries: 4,
        table_bytes: 222,
    },
    Example {
        hex: "4883640effc1c0bf",
        fields: &[
            (":status", "307"),
            ("cache-control", "private"),
            ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
            ("location", "https://www.example.com"),
        ],
        table_entries: 4,
        table_bytes: 222,
    },
    Example {
        hex: "88c16196d07abe941054d444a8200595 \
              040b8166e084a62d1bffc05a839bd9ab \
              77ad94e7821dd7f2e6c7b335dfdfcd5b \
              3960d5af27087f3672c1ab270fb5291f \
              9587316065c003ed4ee5b1063d5007",
        fields: &[
            (":status", "200"),
            ("cache-control", "private"),
            ("date", "Mon, 21 Oct 2013 20:13:22 GMT"),
            ("location", "https://www.example.com"),
            ("content-encoding", "gzip"),
            ("set-cookie", "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"),
        ],
        table_entries: 3,
        table_bytes: 215,
    },
];
