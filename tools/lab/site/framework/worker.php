<?php
// The same page from a worker script.
Outboard\serve(static fn () => Outboard\Response::text("hello from a controller", headers: [
    'Last-Modified' => 'Fri, 02 Sep 2016 08:00:00 GMT',
    'ETag' => '"57c93480-17"',
    'Accept-Ranges' => 'bytes',
]));
