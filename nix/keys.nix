# Options from the table of keys that the programs print (keys.json, kept fresh by a test), so that each key of hive.toml has
# one, and no other does.
{ lib }:

let
  inherit (lib) mkOption types;

  table = builtins.fromJSON (builtins.readFile ./keys.json);

  # `a_long_name` as `aLongName`.
  camelCase =
    name:
    let
      words = builtins.filter builtins.isString (builtins.split "_" name);
      capital = word: lib.toUpper (builtins.substring 0 1 word) + builtins.substring 1 (-1) word;
    in
    builtins.head words + lib.concatStrings (map capital (builtins.tail words));

  # Keys whose options have a name that says more beside those of NixOS.
  renamed = {
    plugins = [ "claudePlugins" ];
    marketplaces = [ "claudeMarketplaces" ];
    plugins_auto_update = [ "claudePluginsAutoUpdate" ];
    cargo_short_messages = [
      "cargo"
      "shortMessages"
    ];
    isolation = [ "sandboxLevel" ];
  };

  # Keys that name a file or a program: a path of Nix becomes one of the store.
  files = [
    "system_prompt"
    "command"
  ];

  secret = types.either types.str (types.attrsOf types.str);

  typeOf =
    name: key:
    {
      string = if builtins.elem name files then types.either types.str types.path else types.str;
      number = types.ints.between key.least key.greatest;
      flag = types.bool;
      strings = types.listOf types.str;
      numbers = types.listOf types.ints.unsigned;
      secret = secret;
      secrets = types.attrsOf secret;
      numbers_by_name = types.attrsOf types.ints.unsigned;
      strings_by_name = types.attrsOf types.str;
    }
    .${key.values};

  optionOf =
    name: key:
    mkOption {
      type = types.nullOr (typeOf name key);
      default = null;
      description = "${key.meaning} (`${key.key}`; null: the default of the programs)";
    };

  # The keys below `prefix` that are not in a table of an author's own names, each as the list of its words.
  below =
    prefix:
    map (key: {
      inherit key;
      words = builtins.filter builtins.isString (
        builtins.split "[.]" (lib.removePrefix prefix key.key)
      );
    }) (builtins.filter (key: lib.hasPrefix prefix key.key) table);

  # Nested attributes from a list of paths and values.
  nested =
    pairs:
    builtins.foldl' (
      all: pair: lib.recursiveUpdate all (lib.setAttrByPath pair.path pair.value)
    ) { } pairs;

  last = words: builtins.elemAt words (builtins.length words - 1);

  # The options of a table by the names of the file.
  asInFile =
    prefix:
    nested (
      map (found: {
        path = found.words;
        value = optionOf (last found.words) found.key;
      }) (below prefix)
    );

  placeOf = words: renamed.${last words} or (map camelCase words);

  # The options of a table by the names of NixOS.
  asInNix =
    prefix:
    nested (
      map (found: {
        path = placeOf found.words;
        value = optionOf (last found.words) found.key;
      }) (builtins.filter (found: !(builtins.elem "KEY" found.words)) (below prefix))
    );

  # The values of such options by the names of the file, without those that are null.
  toFile =
    prefix: values:
    nested (
      builtins.filter (pair: pair.value != null) (
        map (found: {
          path = found.words;
          value = lib.attrByPath (placeOf found.words) null values;
        }) (builtins.filter (found: !(builtins.elem "KEY" found.words)) (below prefix))
      )
    );
in
{
  inherit asInFile asInNix toFile;
}
