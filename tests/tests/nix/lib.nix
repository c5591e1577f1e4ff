# A stand-in for the library of nixpkgs: what nix/ and nixos.nix use of it, and no more.
#
# It is here because a test may need no network. It does what the real one does for valid configurations, and refuses the same
# invalid ones with the same first sentence; all configurations were also evaluated with the real one (docs/nixos.md).
# Simplified: options have no declaration places, values no order of their own (mkBefore), and modules no keys.
let
  inherit (builtins)
    all
    any
    attrNames
    concatLists
    concatStringsSep
    elem
    filter
    foldl'
    head
    isAttrs
    isBool
    isFloat
    isFunction
    isInt
    isList
    isPath
    isString
    length
    map
    mapAttrs
    stringLength
    substring
    tail
    ;

  lib = rec {
    inherit (builtins)
      concatLists
      concatMap
      concatStringsSep
      listToAttrs
      mapAttrs
      ;

    # Strings.
    concatStrings = concatStringsSep "";
    concatMapStringsSep = separator: f: list: concatStringsSep separator (map f list);
    optionalString = condition: text: if condition then text else "";
    hasPrefix = prefix: text: substring 0 (stringLength prefix) text == prefix;
    removePrefix =
      prefix: text: if hasPrefix prefix text then substring (stringLength prefix) (-1) text else text;
    hasInfix = infix: text: builtins.replaceStrings [ infix ] [ "" ] text != text;
    toUpper =
      let
        letters = text: filter (letter: letter != "" && isString letter) (builtins.split "(.)" text) ++ concatLists (filter isList (builtins.split "(.)" text));
      in
      builtins.replaceStrings (letters "abcdefghijklmnopqrstuvwxyz") (letters "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    makeBinPath = packages: concatMapStringsSep ":" (package: "${package}/bin") packages;

    # Lists and attributes.
    optional = condition: value: if condition then [ value ] else [ ];
    optionals = condition: list: if condition then list else [ ];
    optionalAttrs = condition: attrs: if condition then attrs else { };
    nameValuePair = name: value: { inherit name value; };
    mapAttrsToList = f: attrs: map (name: f name attrs.${name}) (attrNames attrs);
    mapAttrs' = f: attrs: listToAttrs (mapAttrsToList f attrs);
    filterAttrs =
      keep: attrs: removeAttrs attrs (filter (name: !(keep name attrs.${name})) (attrNames attrs));
    genAttrs = names: f: listToAttrs (map (name: nameValuePair name (f name)) names);
    attrByPath =
      path: default: attrs:
      if path == [ ] then
        attrs
      else if isAttrs attrs && attrs ? ${head path} then
        attrByPath (tail path) default attrs.${head path}
      else
        default;
    setAttrByPath =
      path: value: if path == [ ] then value else { ${head path} = setAttrByPath (tail path) value; };
    recursiveUpdate =
      left: right:
      if isAttrs left && isAttrs right then
        left
        // mapAttrs (
          name: value: if left ? ${name} then recursiveUpdate left.${name} value else value
        ) right
      else
        right;

    # Options.
    mkOption = attrs: attrs // { _type = "option"; };
    mkEnableOption =
      what:
      mkOption {
        type = types.bool;
        default = false;
        description = "Whether to enable ${what}.";
      };
    literalExpression = text: {
      _type = "literalExpression";
      inherit text;
    };

    # Definitions.
    mkIf = condition: content: {
      _type = "if";
      inherit condition content;
    };
    mkMerge = contents: {
      _type = "merge";
      inherit contents;
    };
    mkOverride = priority: content: {
      _type = "override";
      inherit priority content;
    };
    mkDefault = mkOverride 1000;
    mkForce = mkOverride 50;

    inherit types evalModules;
    importTOML = file: builtins.fromTOML (builtins.readFile file);
    licenses = {
      mit.spdxId = "MIT";
      asl20.spdxId = "Apache-2.0";
    };
    platforms.linux = [
      "x86_64-linux"
      "aarch64-linux"
    ];
    fileset = {
      unions = files: files;
      toSource = { root, fileset }: "${toString root} (${toString (length fileset)} parts)";
    };
  };

  reversed = list: builtins.genList (at: builtins.elemAt list (length list - 1 - at)) (length list);
  showOption = concatStringsSep ".";
  kindOf = value: if isAttrs value then value._type or "" else "";

  # The definitions that hold, each with its priority: conditions that do not hold are left out, and of different priorities the
  # strongest is kept.
  discharged =
    defs:
    let
      expand =
        priority: value:
        {
          "if" = if value.condition then expand priority value.content else [ ];
          merge = concatLists (map (expand priority) value.contents);
          override = expand value.priority value.content;
        }
        .${kindOf value} or [ { inherit priority value; } ];
      found = concatLists (map (expand 100) defs);
      strongest = foldl' (least: def: if def.priority < least then def.priority else least) 9999 found;
    in
    map (def: def.value) (filter (def: def.priority == strongest) found);

  # The same of attributes, without a look at a condition: its content decides which names there are.
  pushedDown =
    value:
    {
      "if" = map (mapAttrs (_: lib.mkIf value.condition)) (pushedDown value.content);
      merge = concatLists (map pushedDown value.contents);
      override = map (mapAttrs (_: lib.mkOverride value.priority)) (pushedDown value.content);
    }
    .${kindOf value} or [ value ];

  merged =
    loc: type: defs:
    let
      values = discharged defs;
      wrong = filter (value: !(type.check value)) values;
    in
    if wrong != [ ] then
      throw "A definition for option `${showOption loc}' is not of type `${type.description}'."
    else
      type.merge loc values;

  # Values without a way to merge them have to be equal.
  one =
    loc: values:
    if all (value: value == head values) values then
      head values
    else
      throw "The option `${showOption loc}' has conflicting definition values:";

  plain = description: check: {
    inherit description check;
    merge = one;
  };

  isStringLike = value: isString value || isPath value || (isAttrs value && value ? outPath);

  types = rec {
    bool = plain "boolean" isBool;
    int = plain "signed integer" isInt;
    float = plain "floating point number" isFloat;
    str = plain "string" isString;
    path = plain "absolute path" (
      value: isStringLike value && substring 0 1 (toString value) == "/"
    );
    package = plain "package" (value: isAttrs value && value.type or "" == "derivation");
    raw = plain "raw value" (_: true) // {
      merge = _: head;
    };
    ints = {
      unsigned = plain "unsigned integer, meaning >=0" (value: isInt value && value >= 0);
      positive = plain "positive integer, meaning >0" (value: isInt value && value > 0);
      between =
        least: greatest:
        plain "integer between ${toString least} and ${toString greatest} (both inclusive)" (
          value: isInt value && value >= least && value <= greatest
        );
    };
    enum =
      values:
      plain "one of ${lib.concatMapStringsSep ", " builtins.toJSON values}" (value: elem value values);

    nullOr = of: {
      description = "null or ${of.description}";
      check = value: value == null || of.check value;
      merge =
        loc: values:
        if all (value: value == null) values then
          null
        else if any (value: value == null) values then
          throw "The option `${showOption loc}` is defined both null and not null"
        else
          of.merge loc values;
    };

    listOf = of: {
      description = "list of ${of.description}";
      check = isList;
      merge = loc: values: map (value: merged (loc ++ [ "[definition 1-entry 1]" ]) of [ value ]) (concatLists values);
    };

    attrsOf = of: {
      description = "attribute set of ${of.description}";
      check = isAttrs;
      merge =
        loc: values:
        let
          sets = concatLists (map pushedDown values);
          names = attrNames (foldl' (found: set: found // set) { } sets);
          defsOf = name: concatLists (map (set: lib.optional (set ? ${name}) set.${name}) sets);
          isDefined = name: discharged (defsOf name) != [ ];
        in
        lib.genAttrs (filter isDefined names) (name: merged (loc ++ [ name ]) of (defsOf name));
    };

    either = first: second: {
      description = "${first.description} or ${second.description}";
      check = value: first.check value || second.check value;
      merge =
        loc: values:
        if all first.check values then
          first.merge loc values
        else if all second.check values then
          second.merge loc values
        else
          one loc values;
    };
    oneOf = list: if tail list == [ ] then head list else either (head list) (oneOf (tail list));

    submodule = module: {
      description = "submodule";
      check = value: isAttrs value || isFunction value || isPath value;
      merge =
        loc: values:
        (evalModules {
          # Attributes are values even if one of them is `config` or `options`.
          modules = [ module ] ++ map (value: if isAttrs value then { config = value; } else value) values;
          specialArgs.name = builtins.elemAt loc (length loc - 1);
          prefix = loc;
        }).config;
    };

    deferredModule = {
      description = "module";
      check = value: isAttrs value || isFunction value || isPath value;
      merge = _: values: { imports = values; };
    };
  };

  # A module as `options` and `config`, with those that it imports.
  loaded =
    args: module:
    let
      value = if isPath module then import module else module;
      called =
        if isFunction value then value (mapAttrs (name: _: args name) (builtins.functionArgs value) // args null) else value;
      isFull = called ? config || called ? options;
      imports = concatLists (map (loaded args) (called.imports or [ ]));
    in
    [
      {
        options = called.options or { };
        freeformType = called.freeformType or null;
        config =
          called.config or { } // (if isFull then { } else removeAttrs called [ "imports" "freeformType" ]);
      }
    ]
    ++ imports;

  evalModules =
    {
      modules,
      specialArgs ? { },
      prefix ? [ ],
    }:
    let
      # Arguments by name, so that which ones a module has is known before their values are.
      common = {
        inherit config lib;
        options = declared;
      };
      args =
        name: if name == null then common // specialArgs else common.${name} or specialArgs.${name} or config._module.args.${name};
      # What a module imports comes after it, and the last module first.
      found = reversed (concatLists (map (loaded args) modules));

      own.options._module.args = lib.mkOption {
        type = types.attrsOf types.raw;
        default = { };
      };
      declared = map (module: module.options) found;
      freeform = foldl' (type: module: if module.freeformType != null then module.freeformType else type) null found;
      config = tree prefix (declared ++ [ own.options ]) (map (module: module.config) found) freeform;
    in
    {
      config = removeAttrs config [ "_module" ];
    };

  # The values of a tree of options.
  tree =
    loc: declared: defined: freeform:
    let
      sets = concatLists (map pushedDown defined);
      namesIn = sets: attrNames (foldl' (found: set: found // set) { } sets);
      declaredOf = name: concatLists (map (set: lib.optional (set ? ${name}) set.${name}) declared);
      definedOf = name: concatLists (map (set: lib.optional (set ? ${name}) set.${name}) sets);
      valueOf =
        name:
        let
          at = loc ++ [ name ];
          options = declaredOf name;
          isOption = any (option: kindOf option == "option") options;
        in
        if isOption then option at (head options) (definedOf name) else tree at options (definedOf name) null;
      names = namesIn declared;
      unknown = filter (name: !(elem name names) && discharged (definedOf name) != [ ]) (namesIn sets);
      known = lib.genAttrs names valueOf;
    in
    if unknown == [ ] then
      known
    else if freeform == null then
      throw "The option `${showOption (loc ++ [ (head unknown) ])}' does not exist."
    else
      freeform.merge loc (map (set: lib.filterAttrs (name: _: elem name unknown) set) sets) // known;

  option =
    loc: declaration: defs:
    let
      isDefined = discharged defs != [ ];
      all = defs ++ lib.optional (declaration ? default) (lib.mkOverride 1500 declaration.default);
    in
    if isDefined || declaration ? default then
      merged loc declaration.type all
    else
      throw "The option `${showOption loc}' was accessed but has no value defined. Try setting the option.";
in
lib
