<?php
echo "\n<p>", number_format(1000), " results</p>\n";
