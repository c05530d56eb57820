<?php
// The page as a script of its own.
header('Content-Type: text/plain');
header('Last-Modified: Fri, 02 Sep 2016 08:00:00 GMT');
header('ETag: "57c93480-17"');
header('Accept-Ranges: bytes');
echo "hello from a controller";
