#!/usr/bin/env php
<?php

// Controls the servers of conf/: php product.php start|stop|restart|reload|status|list [NAME…]

require __DIR__ . '/src/autoload.php';

exit((new product\Manager(__DIR__))->main(array_slice($argv, 1)));
