<?php
// Text of 20 kB that any server would compress, if it compresses at all.
header('Content-Type: text/html; charset=utf-8');
echo '<!doctype html><title>page</title>', str_repeat("<p>All stacks answer this paragraph.</p>\n", 500);
